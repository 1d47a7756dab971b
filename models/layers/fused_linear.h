// A linear layer of few columns as an operator that LibTorch can differentiate: the CPU kernels of
// models/kernels/linear.h.
#ifndef LENGTHWISE_MODELS_LAYERS_FUSED_LINEAR_H_
#define LENGTHWISE_MODELS_LAYERS_FUSED_LINEAR_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Whether FusedLinear takes these and is worth it: float32 on the CPU, enough rows to make up for
// bringing the weights into the kernels' order, and a weight that stays in a core's caches.
bool CanFuseLinear(const at::Tensor& features, const at::Tensor& weight);

// x W + b: `features` [P, B, n, d_in], `weight` [P, d_in, d_out], `bias` [P, d_out] or undefined.
at::Tensor FusedLinear(const at::Tensor& features, const at::Tensor& weight,
                       const at::Tensor& bias);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_FUSED_LINEAR_H_
