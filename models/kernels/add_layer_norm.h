// Residual connection followed by layer norm, fused: one pass over memory forward and one backward.
#ifndef LENGTHWISE_MODELS_KERNELS_ADD_LAYER_NORM_H_
#define LENGTHWISE_MODELS_KERNELS_ADD_LAYER_NORM_H_

#include "models/kernels/parallel_for.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// y = scale x + offset, where x is each row of a + b, centred and divided by its deviation: 1 / r =
// sqrt(biased variance + epsilon) (Ba et al. 2016). a, b, x and y are [P, rows, width], scale and
// offset [P, width], r [P, rows]. The backward pass needs x and r; a + b is not kept.
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

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_ADD_LAYER_NORM_H_
