// Gated feed-forward layer of a block (GeGLU: Shazeer 2020, equation 6), without biases.
#ifndef LENGTHWISE_MODELS_LAYERS_GATED_FEED_FORWARD_H_
#define LENGTHWISE_MODELS_LAYERS_GATED_FEED_FORWARD_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// `inputs` [P, d, 2 d_ff] concatenates the columns of gate and value; `output` is [P, d_ff, d].
struct GatedFeedForwardParameters {
  at::Tensor inputs;
  at::Tensor output;
};

// Gaussian error linear unit, exact or approximated with tanh (Hendrycks and Gimpel 2016).
enum class Gelu { kExact, kTanh };

// Returns (gelu(x gate) * (x value)) output for `features` x [P, B, n, d].
at::Tensor GatedFeedForward(const at::Tensor& features,
                            const GatedFeedForwardParameters& parameters, Gelu gelu);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_GATED_FEED_FORWARD_H_
