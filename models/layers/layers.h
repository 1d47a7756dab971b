// Basic layers for a pack of P models, each with its own weights.
#ifndef LENGTHWISE_MODELS_LAYERS_LAYERS_H_
#define LENGTHWISE_MODELS_LAYERS_LAYERS_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Returns x W, [P, B, n, d_out] in the features' type: `features` [P, B, n, d_in], `weight` [P,
// d_in, d_out], products in the precision of products.h. Many float32 rows on the CPU with small
// weights use our own kernels. Everything else uses LibTorch's: one matrix product if P is 1,
// otherwise a batched one.
at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight);

// Returns x W + b with `bias` [P, d_out].
at::Tensor Linear(const at::Tensor& features, const at::Tensor& weight, const at::Tensor& bias);

// Added to the variance in a layer norm.
inline constexpr double kLayerNormEpsilon = 1e-5;

// Normalises the last axis of `features` [P, B, n, d] (biased variance; Ba et al. 2016), then
// applies `scale` and `offset` [P, d].
at::Tensor LayerNorm(const at::Tensor& features, const at::Tensor& scale, const at::Tensor& offset);

// Returns rows `tokens` (int64 [P, B, n]) of `table` [P, W, d], as [P, B, n, d].
at::Tensor Embed(const at::Tensor& tokens, const at::Tensor& table);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_LAYERS_H_
