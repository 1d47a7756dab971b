// Linear layer, forward and backward: products of thousands of rows with small matrices.
//
// Shapes, contiguous float32: x [P, rows, inputs], W [P, inputs, outputs], b [P, outputs], y [P,
// rows, outputs]. Results are bit-identical for any number of threads and any P: each element of y
// or dx is one sum in the order of the inner index, and sums over rows are added up over fixed
// chunks, in order. Results may differ between instruction sets.
#ifndef LENGTHWISE_MODELS_KERNELS_LINEAR_H_
#define LENGTHWISE_MODELS_KERNELS_LINEAR_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"

namespace lengthwise::kernels {

struct LinearShape {
  int64_t members = 1;
  int64_t rows = 1;
  int64_t inputs = 1;
  int64_t outputs = 1;
};

// y = x W + b. A null bias adds nothing.
void Linear(const LinearShape& shape, const float* x, const float* weight, const float* bias,
            float* y, const ParallelFor& parallel_for);

// dx = dy W^T.
void LinearInputGradient(const LinearShape& shape, const float* dy, const float* weight, float* dx,
                         const ParallelFor& parallel_for);

// dW = x^T dy, and db = the sum of the rows of dy unless `bias_gradient` is null.
void LinearWeightGradient(const LinearShape& shape, const float* x, const float* dy,
                          float* weight_gradient, float* bias_gradient,
                          const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_LINEAR_H_
