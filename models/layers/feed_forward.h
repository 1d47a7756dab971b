// Feed-forward layer of a block.
#ifndef LENGTHWISE_MODELS_LAYERS_FEED_FORWARD_H_
#define LENGTHWISE_MODELS_LAYERS_FEED_FORWARD_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// up [P, d, d_ff], up_bias [P, d_ff], down [P, d_ff, d], down_bias [P, d].
struct FeedForwardParameters {
  at::Tensor up;
  at::Tensor up_bias;
  at::Tensor down;
  at::Tensor down_bias;
};

// Returns max(x up + up_bias, 0) down + down_bias for `features` x [P, B, n, d]. In float32 on the
// CPU, a few hundred rows at a time pass through the whole layer, so that intermediate results stay
// in the cache and the hidden layer's gradient is never stored whole. On a GPU, in float32 and
// bfloat16, bias and ReLU take one pass over the hidden layer forward and one backward.
at::Tensor FeedForward(const at::Tensor& features, const FeedForwardParameters& parameters);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_FEED_FORWARD_H_
