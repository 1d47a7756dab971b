// Numbers of an encoding that never change.
#ifndef LENGTHWISE_MODELS_ENCODINGS_CONSTANT_H_
#define LENGTHWISE_MODELS_ENCODINGS_CONSTANT_H_

#include <utility>

#include "ATen/core/Tensor.h"
#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"

namespace lengthwise::models {

// Brings them to a device once: copied anew for each use they would have to be waited for, and a
// step that does so cannot be recorded. Methods may be called from any thread.
class Constant {
 public:
  // `host` is on the CPU.
  explicit Constant(at::Tensor host) : host_(std::move(host)) {}

  at::Tensor On(const at::Device& device) const;

 private:
  const at::Tensor host_;
  mutable platform::Mutex mutex_;
  // On the device that asked last.
  mutable at::Tensor copy_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_CONSTANT_H_
