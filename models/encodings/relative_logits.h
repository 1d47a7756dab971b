// Position logits of relative encodings, for distances that depend only on j - i, and for distances
// p_j - p_i, all of which may differ.
#ifndef LENGTHWISE_MODELS_ENCODINGS_RELATIVE_LOGITS_H_
#define LENGTHWISE_MODELS_ENCODINGS_RELATIVE_LOGITS_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/encodings/encoding.h"

namespace lengthwise::models {

// Relative shift: converts values per query and distance to values per query and key. Row i of each
// [n, 2n - 1] of `rows` (contiguous, [G, n, 2n - 1]) holds values for the distances j - i =
// -(n - 1) .. n - 1. Returns [G, n, n] with the value for j - i at i, j (Transformer-XL, appendix
// B, in both directions). The result is a view, and its gradient is written once; slices of slices
// would take two passes over twice the logits' memory.
at::Tensor ShiftedRows(const at::Tensor& rows);

// The position logits of Transformer-XL for distances p_j - p_i,
//
//   logits[i, j] = b_i . (PE(p_j - p_i) W_R)
//
// for biased queries b = (q + v) / sqrt(dh). `biased` [P, B, H, n, dh], `sinusoids` = PE(p)
// [P, n, d] of Sinusoids, `projection` = W_R [P, d, H dh]. The result is [P, B, H, n, n], in
// bfloat16 if products are (layers/layers.h) and the device is no CPU. Differentiable in `biased`
// and `projection`. Projects the sinusoids of all distances, R [P, n, n, H dh], for `rows_at_once`
// queries at a time: n^2 d H dh multiplications for each member, then n^2 dh for each sequence and
// head.
at::Tensor DifferenceLogits(const at::Tensor& biased, const at::Tensor& sinusoids,
                            const at::Tensor& projection, int64_t rows_at_once);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_RELATIVE_LOGITS_H_
