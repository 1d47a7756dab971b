// Reference implementation of attention's formula (attention.h), in double precision and plain
// loops. For tests of kernels.
#ifndef LENGTHWISE_MODELS_KERNELS_TESTING_ATTENTION_REFERENCE_H_
#define LENGTHWISE_MODELS_KERNELS_TESTING_ATTENTION_REFERENCE_H_

#include <cstdint>
#include <vector>

namespace lengthwise::kernels {

// One head of one member. Empty vectors are terms that are absent.
struct ReferenceHead {
  int64_t sequences = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_size = 0;
  std::vector<double> q, output_gradient;  // [B, n, dh]
  std::vector<double> k, v;                // [B, m, dh]
  std::vector<double> additive;            // [n, m]
  std::vector<double> relative;            // [dh, n, m], or [dh, n + m - 1]
  bool toeplitz = false;
  std::vector<double> content_bias, position_bias;  // [dh]
  std::vector<double> rotation;                     // [n, dh]: sines, then cosines
  bool causal = false;                              // query i sees keys 0 .. i alone

  // Index in `relative` of R's feature c of query i and key j.
  int64_t RelativePlace(int64_t c, int64_t i, int64_t j) const {
    return toeplitz ? c * (queries + keys - 1) + j - i + queries - 1 : (c * queries + i) * keys + j;
  }
};

// The output, and gradients in the shapes of their inputs.
struct ReferenceResult {
  std::vector<double> output;
  std::vector<double> q, k, v, additive, relative, content_bias, position_bias;
};

ReferenceResult DifferentiateAttention(const ReferenceHead& head);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_TESTING_ATTENTION_REFERENCE_H_
