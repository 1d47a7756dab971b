// RMS normalisation (Zhang and Sennrich 2019), fused: one pass over memory forward and one
// backward.
#ifndef LENGTHWISE_MODELS_KERNELS_RMS_NORM_H_
#define LENGTHWISE_MODELS_KERNELS_RMS_NORM_H_

#include "models/kernels/parallel_for.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// y = scale x r, where 1 / r = sqrt(mean of the row's x^2 + epsilon). x and y are [P, rows, width],
// scale [P, width], r [P, rows].
void RmsNorm(const RowsShape& shape, float epsilon, const float* x, const float* scale, float* y,
             float* r, const ParallelFor& parallel_for);

// Computes the gradients of x and scale from that of y. The gradient of scale is a sum over rows,
// added in an order that depends on the number of rows alone.
void RmsNormBackward(const RowsShape& shape, const float* x, const float* r, const float* scale,
                     const float* y_gradient, float* x_gradient, float* scale_gradient,
                     const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_RMS_NORM_H_
