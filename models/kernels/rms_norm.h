// Normalisation by the root mean square, in one pass over memory each way.
#ifndef LENGTHWISE_MODELS_KERNELS_RMS_NORM_H_
#define LENGTHWISE_MODELS_KERNELS_RMS_NORM_H_

#include "models/kernels/parallel_for.h"
#include "models/kernels/row_chunks.h"

namespace lengthwise::kernels {

// y = scale x r, 1 / r = sqrt(mean of the row's x^2 + epsilon). x and y are [P, rows, width], scale
// [P, width], r [P, rows].
void RmsNorm(const RowsShape& shape, float epsilon, const float* x, const float* scale, float* y,
             float* r, const ParallelFor& parallel_for);

// The gradients of x and scale from that of y. The latter is a sum over rows, in an order that
// depends on their number alone.
void RmsNormBackward(const RowsShape& shape, const float* x, const float* r, const float* scale,
                     const float* y_gradient, float* x_gradient, float* scale_gradient,
                     const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_RMS_NORM_H_
