// What follows the feed-forward layer's first product, in one pass over memory each way.
#ifndef LENGTHWISE_MODELS_KERNELS_BIAS_RELU_H_
#define LENGTHWISE_MODELS_KERNELS_BIAS_RELU_H_

#include "models/kernels/parallel_for.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// x = max(x + bias, 0) in place: x [P, rows, width], a bias [P, width] for each member.
void BiasRelu(const RowsShape& shape, const float* bias, float* x, const ParallelFor& parallel_for);

// From the result of BiasRelu and its gradient: dx = (result > 0) gradient, and the bias's gradient
// as the sum of the rows of dx, in an order that depends on their number alone. dx may be the
// gradient's memory.
void BiasReluBackward(const RowsShape& shape, const float* result, const float* gradient, float* dx,
                      float* bias_gradient, const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_BIAS_RELU_H_
