#include "models/kernels/testing/tensor_problem.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "models/kernels/bfloat16.h"

namespace lengthwise::kernels {
namespace {

Term TermOf(TensorTerm term) {
  switch (term) {
    case TensorTerm::kNone:
      return Term::kNone;
    case TensorTerm::kAdditive:
      return Term::kAdditive;
    case TensorTerm::kRotation:
      return Term::kRotation;
    default:
      return Term::kRelative;
  }
}

void Round(std::vector<float>& numbers) {
  for (float& number : numbers) number = ToFloat(FromFloat<BFloat16>(number));
}

// PE(distance)[c] for the frequencies of encodings/sinusoids.h: sines, then cosines.
double Sinusoid(double distance, int64_t c) {
  constexpr int64_t kHalf = kTensorModel / 2;
  const double exponent = -2.0 * static_cast<double>(c % kHalf) / kTensorModel;
  const double angle = distance * std::pow(10000.0, exponent);
  return c < kHalf ? std::sin(angle) : std::cos(angle);
}

// See ExpectClose. Numbers below `least` count as much.
void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected, double least,
                double tolerance, const char* name) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  double worst = 0, largest = least, errors = 0, squares = 0;
  for (size_t at = 0; at < expected.size(); ++at) {
    const double error = std::abs(actual[at] - expected[at]);
    // Also true if the error is NaN.
    if (!(error <= worst)) worst = error;
    largest = std::max(largest, std::abs(expected[at]));
    errors += error * error;
    squares += std::max(least * least, expected[at] * expected[at]);
  }
  EXPECT_LE(std::sqrt(errors), tolerance * std::sqrt(squares)) << name;
  EXPECT_LE(worst, 4 * tolerance * largest) << name;
}

// Each of queries, keys and values.
template <typename From>
std::vector<From> WhichPart(const std::vector<From>& qkv, size_t which) {
  std::vector<From> part;
  for (size_t at = which * kTensorModel; at < qkv.size(); at += 3 * kTensorModel) {
    part.insert(part.end(), &qkv[at], &qkv[at] + kTensorModel);
  }
  return part;
}

template <typename T>
std::vector<T> PartOf(const std::vector<T>& all, int64_t members, int64_t p) {
  const auto size = static_cast<int64_t>(all.size()) / members;
  return {all.begin() + p * size, all.begin() + (p + 1) * size};
}

}  // namespace

std::string Name(TensorTerm term) {
  const char* const names[] = {"None", "Additive", "Rotation", "PlainRelative",
                               "RandomizedRelative"};
  return names[static_cast<int>(term)];
}

TensorProblem::TensorProblem(const TensorShape& given, TensorTerm term)
    : shape(given),
      problem({.members = shape.members,
               .sequences = shape.sequences,
               .heads = kTensorHeads,
               .queries = shape.tokens,
               .keys = shape.tokens,
               .head_size = kTensorHeadSize},
              TermOf(term)) {
  Round(problem.qkv);
  Round(problem.output_gradient);
  if (TermOf(term) != Term::kRelative) return;
  // As in trained models, u and w are smaller than queries.
  for (std::vector<float>* biases : {&problem.content_bias, &problem.position_bias}) {
    for (float& number : *biases) number *= 0.25F;
  }
  const int64_t n = shape.tokens, d = kTensorModel;
  std::mt19937 random(static_cast<uint32_t>(n));
  std::vector<double> positions(static_cast<size_t>(n));
  projection.resize(static_cast<size_t>(shape.members * d * d));
  for (float& number : projection) {
    number = 0.3F * (static_cast<float>(random()) * 0x1p-31F - 1);
  }
  Round(projection);
  for (int64_t p = 0; p < shape.members; ++p) {
    for (int64_t i = 0; i < n; ++i) {
      // Increasing: one of each n-th part of 2,048.
      const int64_t apart = term == TensorTerm::kPlain ? 1 : 2048 / n;
      positions[static_cast<size_t>(i)] =
          static_cast<double>(i * apart + static_cast<int64_t>(random()) % apart);
      for (int64_t c = 0; c < d; ++c) {
        sinusoids.push_back(static_cast<float>(Sinusoid(positions[static_cast<size_t>(i)], c)));
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const double distance =
            positions[static_cast<size_t>(j)] - positions[static_cast<size_t>(i)];
        std::vector<double> sums(static_cast<size_t>(d));
        for (int64_t f = 0; f < d; ++f) {
          const double sinusoid = Sinusoid(distance, f);
          for (int64_t c = 0; c < d; ++c) {
            sums[static_cast<size_t>(c)] +=
                sinusoid * projection[static_cast<size_t>((p * d + f) * d + c)];
          }
        }
        for (int64_t c = 0; c < d; ++c) {
          problem.relative[static_cast<size_t>(((p * d + c) * n + i) * n + j)] =
              static_cast<float>(sums[static_cast<size_t>(c)]);
        }
      }
    }
  }
}

TensorAttentionInputs TensorProblem::Inputs() const {
  const AttentionTerms terms = problem.Terms();
  return {.shape = shape,
          .additive = terms.additive,
          .additive_shared = terms.additive_shared,
          .rotation = terms.rotation,
          .content_bias = terms.content_bias,
          .position_bias = terms.position_bias,
          .bias_stride = terms.bias_stride == 0 ? kTensorModel : terms.bias_stride};
}

TensorProblem TensorProblem::Member(int64_t p) const {
  TensorProblem member = *this;
  member.shape.members = 1;
  member.problem = MemberOf(problem, p);
  member.sinusoids = PartOf(sinusoids, shape.members, p);
  member.projection = PartOf(projection, shape.members, p);
  return member;
}

void TensorProblem::ShareAdditive() {
  problem.additive.resize(problem.additive.size() / static_cast<size_t>(shape.members));
  problem.additive_shared = true;
}

TensorResults TensorResults::Member(const TensorProblem& pack, int64_t p) const {
  TensorResults member = *this;
  member.attention = MemberOf(attention, pack.problem, p);
  member.projection = PartOf(projection, pack.shape.members, p);
  return member;
}

void ExpectClose(const TensorProblem& given, const TensorResults& actual, double tolerance) {
  Problem problem = given.problem;
  const std::vector<float> of_one = problem.additive;
  if (problem.additive_shared) {
    problem.additive_shared = false;
    for (int64_t p = 1; p < given.shape.members; ++p) {
      problem.additive.insert(problem.additive.end(), of_one.begin(), of_one.end());
    }
  }
  const Results<double> expected = ComputeReference(problem);
  // Of a single key, no logit changes the output.
  const double least = given.shape.tokens == 1 ? 1 : 0;
  const int64_t n = given.shape.tokens, d = kTensorModel;
  if (!given.projection.empty()) {
    // dW_R[f, c] = sum over pairs of PE(p_j - p_i)[f] dR[c, i, j].
    std::vector<double> gradient(given.projection.size());
    for (int64_t p = 0; p < given.shape.members; ++p) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const auto at = [&](int64_t token, int64_t f) {
            return static_cast<double>(
                given.sinusoids[static_cast<size_t>((p * n + token) * d + f)]);
          };
          for (int64_t f = 0; f < d; ++f) {
            const int64_t s = f % (d / 2), c = s + d / 2;
            const double sinusoid = f < d / 2 ? at(j, s) * at(i, c) - at(j, c) * at(i, s)
                                              : at(j, c) * at(i, c) + at(j, s) * at(i, s);
            for (int64_t k = 0; k < d; ++k) {
              gradient[static_cast<size_t>((p * d + f) * d + k)] +=
                  sinusoid * expected.relative[static_cast<size_t>(((p * d + k) * n + i) * n + j)];
            }
          }
        }
      }
    }
    // Gradients of a query's logits add up to 0, so what plain positions have in common cancels.
    // The rounding errors of all queries stay.
    const double cancelling = 0.25 * std::sqrt(static_cast<double>(given.shape.sequences * n));
    ExpectNear(actual.projection, gradient, cancelling, tolerance, "gradient of the projection");
    ExpectNear(actual.attention.content_bias, expected.content_bias, cancelling, tolerance,
               "gradient of content_bias");
    ExpectNear(actual.attention.position_bias, expected.position_bias, cancelling, tolerance,
               "gradient of position_bias");
  }
  ExpectNear(actual.attention.output, expected.output, 0, tolerance, "output");
  ExpectNear(actual.attention.additive, expected.additive, least, tolerance,
             "gradient of the additive term");
  const char* const names[] = {"gradient of queries", "gradient of keys", "gradient of values"};
  for (size_t which = 0; which < 3; ++which) {
    ExpectNear(WhichPart(actual.attention.qkv, which), WhichPart(expected.qkv, which),
               which == 2 ? 0 : least, tolerance, names[which]);
  }
}

void ExpectSameBits(const TensorResults& a, const TensorResults& b) {
  ExpectSameBits(a.attention, b.attention);
  EXPECT_EQ(a.projection, b.projection);
}

}  // namespace lengthwise::kernels
