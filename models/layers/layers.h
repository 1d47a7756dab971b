// The layers of a pack: P models side by side, each with its own weights.
#ifndef LENGTHWISE_MODELS_LAYERS_LAYERS_H_
#define LENGTHWISE_MODELS_LAYERS_LAYERS_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// x W: `features` [P, B, n, d_in] and `weight` [P, d_in, d_out] give [P, B, n, d_out], of the
// features' type, in products.h's precision. Many rows of float32 on the CPU and small weights take
// kernels of our own, everything else LibTorch's: one matrix product where P is 1, a batched one
// otherwise.
at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight);

// x W + b with `bias` [P, d_out].
at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight, const at::Tensor& bias);

// What is added to the variance in a layer norm.
inline constexpr double kLayerNormEpsilon = 1e-5;

// Normalises the last axis of [P, B, n, d] (biased variance; Ba et al. 2016), then
// applies `scale` and `offset` [P, d].
at::Tensor LayerNorm(const at::Tensor& features, const at::Tensor& scale, const at::Tensor& offset);

// Rows `tokens` (int64 [P, B, n]) of `table` [P, W, d]: [P, B, n, d].
at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_LAYERS_H_
