// Gated GELU, gelu(gate) * value, fused: one pass over memory forward and one backward.
#ifndef LENGTHWISE_MODELS_KERNELS_GATED_GELU_H_
#define LENGTHWISE_MODELS_KERNELS_GATED_GELU_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"

namespace lengthwise::kernels {

// y [rows, width] = gelu(gate) * value. Rows of x [rows, 2 width] hold the gate, then the value.
// gelu(g) = g Phi(g), where Phi is the normal distribution (Hendrycks and Gimpel 2016), to 1e-7 of
// the largest magnitude.
void GatedGelu(int64_t rows, int64_t width, const float* x, float* y,
               const ParallelFor& parallel_for);

// Computes the gradient of x from that of y.
void GatedGeluBackward(int64_t rows, int64_t width, const float* x, const float* y_gradient,
                       float* x_gradient, const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_GATED_GELU_H_
