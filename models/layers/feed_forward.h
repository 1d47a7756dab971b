// Feed-forward layers of a block, plain and gated.
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
// bfloat16, bias and ReLU take one pass over the hidden layer forward and one backward; where
// CanUseTensorCores, the hidden layer stays on the chip.
at::Tensor FeedForward(const at::Tensor& features, const FeedForwardParameters& parameters);

// Returns true if the kernels on tensor cores (kernels/tensor_feed_forward_cuda.h) take this layer:
// `x` is bfloat16 on a GPU, with 64 features and 256 hidden ones. Returns false if the thread's
// KernelChoice selects LibTorch's operators.
bool CanUseTensorCores(const at::Tensor& x, const FeedForwardParameters& parameters);

// `inputs` [P, d, 2 d_ff] concatenates the columns of gate and value; `output` is [P, d_ff, d].
struct GatedFeedForwardParameters {
  at::Tensor inputs;
  at::Tensor output;
};

// Gaussian error linear unit, exact or approximated with tanh (Hendrycks and Gimpel 2016).
enum class Gelu { kExact, kTanh };

// Gated feed-forward layer (GeGLU: Shazeer 2020, equation 6), without biases. Returns
// (gelu(x gate) * (x value)) output for `features` x [P, B, n, d].
at::Tensor GatedFeedForward(const at::Tensor& features,
                            const GatedFeedForwardParameters& parameters, Gelu gelu);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_FEED_FORWARD_H_
