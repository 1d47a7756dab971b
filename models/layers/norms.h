// Norms over the features of a token, for a pack of P models.
#ifndef LENGTHWISE_MODELS_LAYERS_NORMS_H_
#define LENGTHWISE_MODELS_LAYERS_NORMS_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Added to the variance in a layer norm.
inline constexpr double kLayerNormEpsilon = 1e-5;

// Normalises the last axis of `features` [P, B, n, d] (biased variance; Ba et al. 2016), then
// applies `scale` and `offset` [P, d].
at::Tensor LayerNorm(const at::Tensor& features, const at::Tensor& scale, const at::Tensor& offset);

// A layer norm and the same as operand of products (Operand of layers.h).
struct Normed {
  at::Tensor features, operand;
};

// Fuses a block's residual addition with the layer norm after it: returns LayerNorm(a + b), a and b
// [P, B, n, d], scale and offset [P, d]. In float32 it passes over memory once forward and once
// backward. On a GPU, b may be bfloat16, the result of a bfloat16 product. Saves only the
// normalised rows for the backward pass, neither the sum nor the result. Where products are in
// bfloat16, our kernels for a GPU write norm and operand in one pass, and the backward pass takes
// both gradients, so that nothing adds them before.
Normed AddLayerNorm(const at::Tensor& a, const at::Tensor& b, const at::Tensor& scale,
                    const at::Tensor& offset);

// Added to the mean square in a root-mean-square norm.
inline constexpr double kRmsNormEpsilon = 1e-6;

// Normalises by the root mean square (Zhang and Sennrich 2019): returns x / sqrt(mean(x^2) +
// epsilon) * scale over the last axis of `features` x [P, B, n, d], with `scale` [P, d]. In float32
// on the CPU it passes over memory once forward and once backward.
at::Tensor RmsNorm(const at::Tensor& features, const at::Tensor& scale);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_NORMS_H_
