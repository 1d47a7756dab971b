// Linear and feed-forward layers, forward and backward: products of thousands of rows with small
// matrices.
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

// A feed-forward layer max(x up + up_bias, 0) down + down_bias. Both products run on a few rows at
// a time, so that the hidden activations stay in cache and their gradient is never stored as a
// whole. Shapes: x and y [P, rows, features], up [P, features, hidden], up_bias [P, hidden], down
// [P, hidden, features], down_bias [P, features].
struct FeedForwardShape {
  int64_t members = 1;
  int64_t rows = 1;
  int64_t features = 1;
  int64_t hidden = 1;
};

struct FeedForwardWeights {
  const float* up = nullptr;
  const float* up_bias = nullptr;
  const float* down = nullptr;
  const float* down_bias = nullptr;
};

// Writes y and `hidden` [P, rows, hidden], the activations after the ReLU.
void FeedForward(const FeedForwardShape& shape, const FeedForwardWeights& weights, const float* x,
                 float* hidden, float* y, const ParallelFor& parallel_for);

// Destinations, which are overwritten.
struct FeedForwardGradients {
  float* x = nullptr;
  float* up = nullptr;
  float* up_bias = nullptr;
  float* down = nullptr;
  float* down_bias = nullptr;
};

// Computes all gradients from `dy`, x and the `hidden` that FeedForward wrote. The biases of
// `weights` are not read.
void FeedForwardBackward(const FeedForwardShape& shape, const FeedForwardWeights& weights,
                         const float* x, const float* hidden, const float* dy,
                         const FeedForwardGradients& gradients, const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_LINEAR_H_
