// From "every query with every distance" to "every query with every key".
#ifndef LENGTHWISE_MODELS_ENCODINGS_SHIFTED_ROWS_H_
#define LENGTHWISE_MODELS_ENCODINGS_SHIFTED_ROWS_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Row i of each [n, 2n - 1] of `rows` (contiguous, [G, n, 2n - 1]) holds values for the distances
// j - i = -(n - 1) .. n - 1; the result [G, n, n] has at i, j the value for j - i (the relative
// shift of Transformer-XL, appendix B, both ways). It is a view, and its gradient is written into
// a row once; slices of slices would pass over twice the logits' memory for each.
at::Tensor ShiftedRows(const at::Tensor& rows);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_SHIFTED_ROWS_H_
