#include "models/encodings/made_of_positions.h"

namespace lengthwise::models {
namespace {

// Whether they are views of the same numbers in the same memory.
bool SameNumbers(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && a.const_data_ptr() == b.const_data_ptr() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

}  // namespace

at::Tensor MadeOfPositions::Get(const at::Tensor& positions, at::ScalarType dtype,
                                const std::function<at::Tensor()>& make) {
  // Tensors of inference mode do not count their versions.
  if (positions.is_inference()) return make();
  const auto version = static_cast<int64_t>(positions._version());
  const platform::MutexLock lock(mutex_);
  if (!SameNumbers(positions_, positions) || version_ != version || made_.scalar_type() != dtype) {
    made_ = make();
    positions_ = positions;
    version_ = version;
  }
  return made_;
}

}  // namespace lengthwise::models
