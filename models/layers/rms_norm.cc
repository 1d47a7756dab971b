#include "models/layers/rms_norm.h"

#include "ATen/ops/rms_norm.h"

namespace lengthwise::models {

at::Tensor RmsNorm(const at::Tensor& features, const at::Tensor& scale) {
  const int64_t d = features.size(3);
  if (features.size(0) == 1) return at::rms_norm(features, {d}, scale.squeeze(0), kRmsNormEpsilon);
  return at::rms_norm(features, {d}, {}, kRmsNormEpsilon).mul(scale.unsqueeze(1).unsqueeze(1));
}

}  // namespace lengthwise::models
