#include "models/encodings/kept_tensors.h"

#include "ATen/ops/equal.h"
#include "c10/core/InferenceMode.h"

namespace lengthwise::models {

at::Tensor Constant::On(const at::Device& device) const {
  if (device.is_cpu()) return host_;
  const platform::MutexLock lock(mutex_);
  if (!copy_.defined() || copy_.device() != device) copy_ = host_.to(device);
  return copy_;
}

at::Tensor MadeOfPositions::Get(const at::Tensor& positions, at::ScalarType dtype,
                                const std::function<at::Tensor()>& make) {
  // Autograd cannot save inference tensors for a backward pass.
  if (c10::InferenceMode::is_enabled()) return make();
  const platform::MutexLock lock(mutex_);
  if (!made_.defined() || made_.scalar_type() != dtype || !AreTheLast(positions)) {
    made_ = at::Tensor();  // free the old tensor first
    made_ = make();
    positions_ = positions.is_cpu() ? positions.clone() : positions;
    version_ = positions_._version();
  }
  return made_;
}

bool MadeOfPositions::AreTheLast(const at::Tensor& positions) const {
  if (positions.is_cpu() && positions_.is_cpu()) {
    return positions_.sizes() == positions.sizes() && at::equal(positions_, positions);
  }
  return positions_.is_same(positions) && positions_._version() == version_;
}

}  // namespace lengthwise::models
