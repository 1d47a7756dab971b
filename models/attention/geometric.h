// Geometric attention with directional encoding (Csordas et al. 2022, The Neural Data Router,
// section 3.2; Table 5 of randomized positional encodings): a query attends to the nearest key that
// matches, instead of spreading a soft-max over all keys.
//
//   l_ij = s (q_i + u) . k_j + s_p (front_i if j > i else back_i) + b
//   p_ij = sigmoid(l_ij) prod_{k in S_ij} (1 - sigmoid(l_ik)),  p_ii = 0
//
// S_ij are the keys other than i that are nearer to i than j is and, for j < i, the key equally far
// on the right. Rows of p are then divided by their sums.
#ifndef LENGTHWISE_MODELS_ATTENTION_GEOMETRIC_H_
#define LENGTHWISE_MODELS_ATTENTION_GEOMETRIC_H_

#include <cstdint>
#include <string>

#include "ATen/core/Tensor.h"
#include "models/attention/attention.h"
#include "models/encodings/encoding.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"

namespace lengthwise::models {

// p before the division, computed in log space from logits [..., n, n] (rows are queries). Ignores
// the logits' diagonal.
at::Tensor GeometricProbabilities(const at::Tensor& logits);

// Divides rows by their sums, or by 1e-12 if the sum is less. A single token attends to nothing.
at::Tensor NormalizeRows(const at::Tensor& probabilities);

// Parameters of one block, added to the layout: "<prefix>content_bias" (u, [H, dh]), "direction"
// ([d, 2 H], back, then front) with "direction_bias", and the scalars "content_scale" (s),
// "direction_scale" (s_p) and "offset" (b).
struct GeometricIds {
  GeometricIds(ParameterLayout& layout, const std::string& prefix, int64_t heads, int64_t d_model);

  ParameterId content_bias, direction, direction_bias;
  ParameterId content_scale, direction_scale, offset;
};

// Attend with geometric attention. `features` [P, B, n, d] are the input of the query projection.
// The encoding may still rotate queries and keys and add to the logits.
at::Tensor AttendGeometrically(const Encoding& encoding, const ParameterSet& parameters,
                               const GeometricIds& ids, int64_t block, int64_t heads,
                               const at::Tensor& positions, const at::Tensor& features,
                               const at::Tensor& queries, const at::Tensor& keys,
                               const at::Tensor& values, AttentionMaps* maps);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ATTENTION_GEOMETRIC_H_
