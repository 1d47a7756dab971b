// A block's residual connection and the layer norm behind it.
#ifndef LENGTHWISE_MODELS_LAYERS_ADD_LAYER_NORM_H_
#define LENGTHWISE_MODELS_LAYERS_ADD_LAYER_NORM_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// LayerNorm(a + b) of layers.h: a and b [P, B, n, d], scale and offset [P, d]. For float32 in one
// pass over memory each way; on a GPU b may be bfloat16, as products in that type give it. Kept for
// the backward pass are the normalised rows and neither the sum nor what scale and offset make of
// them.
at::Tensor AddLayerNorm(const at::Tensor& a, const at::Tensor& b, const at::Tensor& scale,
                        const at::Tensor& offset);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_ADD_LAYER_NORM_H_
