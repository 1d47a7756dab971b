// Normalises by the root mean square (Zhang and Sennrich 2019).
#ifndef LENGTHWISE_MODELS_LAYERS_RMS_NORM_H_
#define LENGTHWISE_MODELS_LAYERS_RMS_NORM_H_

#include "ATen/core/Tensor.h"

namespace lengthwise::models {

// Added to the mean square.
inline constexpr double kRmsNormEpsilon = 1e-6;

// Returns x / sqrt(mean(x^2) + epsilon) * scale over the last axis of `features` x [P, B, n, d],
// with `scale` [P, d]. In float32 on the CPU it passes over memory once forward and once backward.
at::Tensor RmsNorm(const at::Tensor& features, const at::Tensor& scale);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_RMS_NORM_H_
