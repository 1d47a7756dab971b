#include "models/kernels/testing/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lengthwise::kernels {
namespace {

double At(const std::vector<double>& bias, int64_t c) {
  return bias.empty() ? 0 : bias[static_cast<size_t>(c)];
}

std::vector<double> Logits(const ReferenceHead& head, const double* q, const double* keys,
                           int64_t i) {
  const int64_t m = head.keys, dh = head.head_size;
  std::vector<double> logits(static_cast<size_t>(m));
  for (int64_t c = 0; c < dh; ++c) {
    const double content = q[c] + At(head.content_bias, c);
    for (int64_t j = 0; j < m; ++j) logits[j] += content * keys[j * dh + c];
    if (head.relative.empty()) continue;
    const double position = q[c] + At(head.position_bias, c);
    const double* relative = &head.relative[static_cast<size_t>(head.RelativePlace(c, i, 0))];
    for (int64_t j = 0; j < m; ++j) logits[j] += position * relative[j];
  }
  for (int64_t j = 0; j < m; ++j) {
    logits[j] /= std::sqrt(static_cast<double>(dh));
    if (!head.additive.empty()) logits[j] += head.additive[static_cast<size_t>(i * m + j)];
    if (head.causal && j > i) logits[j] = -std::numeric_limits<double>::infinity();
  }
  return logits;
}

void Softmax(std::vector<double>& row) {
  const double maximum = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - maximum);
  for (double& value : row) value /= sum;
}

// Vectors [B, n, dh] turned by their tokens' angles, or back.
std::vector<double> Turned(const ReferenceHead& head, std::vector<double> x, double direction) {
  const auto dh = static_cast<size_t>(head.head_size);
  for (size_t first = 0; !head.rotation.empty() && first < x.size(); first += dh) {
    const double* angles = &head.rotation[first % head.rotation.size()];
    for (size_t c = 0; c < dh / 2; ++c) {
      const double sine = direction * angles[c], cosine = angles[dh / 2 + c];
      const double even = x[first + 2 * c], odd = x[first + 2 * c + 1];
      x[first + 2 * c] = even * cosine - odd * sine;
      x[first + 2 * c + 1] = even * sine + odd * cosine;
    }
  }
  return x;
}

ReferenceResult DifferentiateTurned(const ReferenceHead& head) {
  const int64_t n = head.queries, m = head.keys, dh = head.head_size;
  const double scale = 1 / std::sqrt(static_cast<double>(dh));
  ReferenceResult result;
  result.output.resize(head.q.size());
  result.q.resize(head.q.size());
  result.k.resize(head.k.size());
  result.v.resize(head.v.size());
  result.additive.resize(head.additive.size());
  result.relative.resize(head.relative.size());
  result.content_bias.resize(head.content_bias.size());
  result.position_bias.resize(head.position_bias.size());
  std::vector<double> gradients(static_cast<size_t>(m));
  for (int64_t b = 0; b < head.sequences; ++b) {
    const double* keys = &head.k[static_cast<size_t>(b * m * dh)];
    const double* values = &head.v[static_cast<size_t>(b * m * dh)];
    double* key_gradients = &result.k[static_cast<size_t>(b * m * dh)];
    double* value_gradients = &result.v[static_cast<size_t>(b * m * dh)];
    for (int64_t i = 0; i < n; ++i) {
      const auto first = static_cast<size_t>((b * n + i) * dh);
      const double* q = &head.q[first];
      const double* output_gradient = &head.output_gradient[first];
      double* output = &result.output[first];
      std::vector<double> p = Logits(head, q, keys, i);
      Softmax(p);
      // dp_j = do . v_j; dl_j = p_j (dp_j - sum_k p_k dp_k).
      double mean = 0;
      for (int64_t j = 0; j < m; ++j) {
        double product = 0;
        for (int64_t c = 0; c < dh; ++c) {
          output[c] += p[j] * values[j * dh + c];
          value_gradients[j * dh + c] += p[j] * output_gradient[c];
          product += output_gradient[c] * values[j * dh + c];
        }
        gradients[j] = product;
        mean += p[j] * product;
      }
      for (int64_t j = 0; j < m; ++j) {
        gradients[j] = p[j] * (gradients[j] - mean);
        if (!result.additive.empty()) result.additive[i * m + j] += gradients[j];
      }
      for (int64_t c = 0; c < dh; ++c) {
        const double content = q[c] + At(head.content_bias, c);
        double by_content = 0;
        for (int64_t j = 0; j < m; ++j) {
          by_content += scale * gradients[j] * keys[j * dh + c];
          key_gradients[j * dh + c] += scale * gradients[j] * content;
        }
        result.q[first + c] += by_content;
        if (head.relative.empty()) continue;
        const double position = q[c] + At(head.position_bias, c);
        const auto place = static_cast<size_t>(head.RelativePlace(c, i, 0));
        double by_position = 0;
        for (int64_t j = 0; j < m; ++j) {
          by_position += scale * gradients[j] * head.relative[place + j];
          result.relative[place + j] += scale * gradients[j] * position;
        }
        result.q[first + c] += by_position;
        result.content_bias[c] += by_content;
        result.position_bias[c] += by_position;
      }
    }
  }
  return result;
}

}  // namespace

ReferenceResult DifferentiateAttention(const ReferenceHead& head) {
  ReferenceHead turned = head;
  turned.q = Turned(head, head.q, 1);
  turned.k = Turned(head, head.k, 1);
  ReferenceResult result = DifferentiateTurned(turned);
  result.q = Turned(head, std::move(result.q), -1);
  result.k = Turned(head, std::move(result.k), -1);
  return result;
}

}  // namespace lengthwise::kernels
