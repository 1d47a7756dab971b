// Norms over the features of a token, fused: one pass over memory forward and one backward.
#ifndef LENGTHWISE_MODELS_KERNELS_NORMS_H_
#define LENGTHWISE_MODELS_KERNELS_NORMS_H_

#include "models/kernels/parallel_for.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// Residual connection followed by layer norm: y = scale x + offset, where x is each row of a + b,
// centred and divided by its deviation: 1 / r = sqrt(biased variance + epsilon) (Ba et al. 2016).
// a, b, x and y are [P, rows, width], scale and offset [P, width], r [P, rows]. The backward pass
// needs x and r; a + b is not kept.
struct AddLayerNormResult {
  float* y = nullptr;
  float* x = nullptr;
  float* r = nullptr;
};
void AddLayerNorm(const RowsShape& shape, float epsilon, const float* a, const float* b,
                  const float* scale, const float* offset, const AddLayerNormResult& result,
                  const ParallelFor& parallel_for);

// Computes the gradients of a + b (the gradient of a and of b alike), scale and offset from that of
// y. Gradients of scale and offset are sums over rows, added in an order that depends on the number
// of rows alone.
struct AddLayerNormGradients {
  float* sum = nullptr;
  float* scale = nullptr;
  float* offset = nullptr;
};
void AddLayerNormBackward(const RowsShape& shape, const float* x, const float* r,
                          const float* scale, const float* y_gradient,
                          const AddLayerNormGradients& gradients, const ParallelFor& parallel_for);

// RMS normalisation (Zhang and Sennrich 2019): y = scale x r, where 1 / r = sqrt(mean of the row's
// x^2 + epsilon). x and y are [P, rows, width], scale [P, width], r [P, rows].
void RmsNorm(const RowsShape& shape, float epsilon, const float* x, const float* scale, float* y,
             float* r, const ParallelFor& parallel_for);

// Computes the gradients of x and scale from that of y. The gradient of scale is a sum over rows,
// added in an order that depends on the number of rows alone.
void RmsNormBackward(const RowsShape& shape, const float* x, const float* r, const float* scale,
                     const float* y_gradient, float* x_gradient, float* scale_gradient,
                     const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_NORMS_H_
