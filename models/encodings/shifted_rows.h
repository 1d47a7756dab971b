// Relative shift: converts values per query and distance to values per query and key.
#ifndef LENGTHWISE_MODELS_ENCODINGS_SHIFTED_ROWS_H_
#define LENGTHWISE_MODELS_ENCODINGS_SHIFTED_ROWS_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Row i of each [n, 2n - 1] of `rows` (contiguous, [G, n, 2n - 1]) holds values for the distances
// j - i = -(n - 1) .. n - 1. Returns [G, n, n] with the value for j - i at i, j (Transformer-XL,
// appendix B, in both directions). The result is a view, and its gradient is written once; slices
// of slices would take two passes over twice the logits' memory.
at::Tensor ShiftedRows(const at::Tensor& rows);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_SHIFTED_ROWS_H_
