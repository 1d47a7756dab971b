// Wraps the CPU kernels of models/kernels/linear.h, for linear layers with few columns, as an
// operator that LibTorch can differentiate.
#ifndef LENGTHWISE_MODELS_LAYERS_FUSED_LINEAR_H_
#define LENGTHWISE_MODELS_LAYERS_FUSED_LINEAR_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Returns true if FusedLinear supports the tensors and is faster: float32 on the CPU, enough rows
// to amortize packing the weights, and weights that fit in a core's caches.
bool CanFuseLinear(const at::Tensor& features, const at::Tensor& weight);

// Returns x W + b: `features` [P, B, n, d_in], `weight` [P, d_in, d_out], `bias` [P, d_out] or
// undefined.
at::Tensor FusedLinear(const at::Tensor& features, const at::Tensor& weight,
                       const at::Tensor& bias);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_FUSED_LINEAR_H_
