// Fuses a block's residual addition with the layer norm after it.
#ifndef LENGTHWISE_MODELS_LAYERS_ADD_LAYER_NORM_H_
#define LENGTHWISE_MODELS_LAYERS_ADD_LAYER_NORM_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Returns LayerNorm(a + b) of layers.h: a and b [P, B, n, d], scale and offset [P, d]. In float32
// it passes over memory once forward and once backward. On a GPU, b may be bfloat16, the result of
// a bfloat16 product. Saves only the normalised rows for the backward pass, neither the sum nor the
// result.
at::Tensor AddLayerNorm(const at::Tensor& a, const at::Tensor& b, const at::Tensor& scale,
                        const at::Tensor& offset);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_ADD_LAYER_NORM_H_
