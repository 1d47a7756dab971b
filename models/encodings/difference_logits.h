// Position logits of Transformer-XL for distances p_j - p_i, all of which may differ:
//
//   logits[i, j] = b_i . (PE(p_j - p_i) W_R)
//
// for biased queries b = (q + v) / sqrt(dh), in two ways that differ in rounding only.
#ifndef LENGTHWISE_MODELS_ENCODINGS_DIFFERENCE_LOGITS_H_
#define LENGTHWISE_MODELS_ENCODINGS_DIFFERENCE_LOGITS_H_

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// `biased` [P, B, H, n, dh], `sinusoids` = PE(p) [P, n, d] of Sinusoids, `projection` = W_R
// [P, d, H dh]. The result is [P, B, H, n, n]. Differentiable in `biased` and `projection`.

// Projects the sinusoids of all distances, R [P, n, n, H dh], for `rows_at_once` queries at a time:
// n^2 d H dh multiplications for each member, then n^2 dh for each sequence and head.
at::Tensor DifferenceLogits(const at::Tensor& biased, const at::Tensor& sinusoids,
                            const at::Tensor& projection, int64_t rows_at_once);

// Needs no R: by the addition theorems the logits are Q_i . PE(p_j), where Q_i is W_R^T b_i
// (of the head's columns) with each pair of sine and cosine rotated by the angles of p_i. One
// product with keys that heads and sequences share: n^2 d multiplications for each sequence and
// head, and nothing of size n^2 but the result.
at::Tensor FactoredDifferenceLogits(const at::Tensor& biased, const at::Tensor& sinusoids,
                                    const at::Tensor& projection);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_DIFFERENCE_LOGITS_H_
