// A feed-forward layer max(x up + up_bias, 0) down + down_bias, forward and backward, some rows at
// a time through all of it: what is between the products stays in the cache, and the gradient of
// the hidden numbers never exists as a whole.
//
// Shapes, contiguous float32: x and y [P, rows, features], up [P, features, hidden], up_bias [P,
// hidden], down [P, hidden, features], down_bias [P, features]. Bits depend on the instruction set
// alone, as in linear.h.
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

// Writes y and `hidden` [P, rows, hidden], the hidden numbers after the maximum.
void FeedForward(const FeedForwardShape& shape, const FeedForwardWeights& weights, const float* x,
                 float* hidden, float* y, const ParallelFor& parallel_for);

// Where gradients are written (not added).
struct FeedForwardGradients {
  float* x = nullptr;
  float* up = nullptr;
  float* up_bias = nullptr;
  float* down = nullptr;
  float* down_bias = nullptr;
};

// From `dy`, x and the hidden numbers of FeedForward. `weights` needs no biases.
void FeedForwardBackward(const FeedForwardShape& shape, const FeedForwardWeights& weights,
                         const float* x, const float* hidden, const float* dy,
                         const FeedForwardGradients& gradients, const ParallelFor& parallel_for);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_FEED_FORWARD_H_
