// Feed-forward layer max(x up + up_bias, 0) down + down_bias, forward and backward. Both products
// run on a few rows at a time, so that the hidden activations stay in cache and their gradient is
// never stored as a whole.
//
// Shapes, contiguous float32: x and y [P, rows, features], up [P, features, hidden], up_bias [P,
// hidden], down [P, hidden, features], down_bias [P, features]. As in linear.h, results depend on
// the instruction set, but not on threads or P.
#ifndef LENGTHWISE_MODELS_KERNELS_FEED_FORWARD_H_
#define LENGTHWISE_MODELS_KERNELS_FEED_FORWARD_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"

namespace lengthwise::kernels {

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

#endif  // LENGTHWISE_MODELS_KERNELS_FEED_FORWARD_H_
