#include "models/encodings/constant.h"

namespace lengthwise::models {

at::Tensor Constant::On(const at::Device& device) const {
  if (device.is_cpu()) return host_;
  const platform::MutexLock lock(mutex_);
  if (!copy_.defined() || copy_.device() != device) copy_ = host_.to(device);
  return copy_;
}

}  // namespace lengthwise::models
