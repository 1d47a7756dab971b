// A block's feed-forward layer.
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

// max(x up + up_bias, 0) down + down_bias for `features` x [P, B, n, d]. For float32 on the CPU a
// few hundred rows go through the whole layer at a time, so that what is between the products stays
// in the cache, and the gradient of the hidden layer never exists as a whole; on a GPU, in float32
// and bfloat16, bias and ReLU are one pass over the hidden layer each way.
at::Tensor FeedForward(const at::Tensor& features, const FeedForwardParameters& parameters);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_FEED_FORWARD_H_
