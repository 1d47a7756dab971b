// Tensors that encodings keep from step to step instead of making them again.
#ifndef LENGTHWISE_MODELS_ENCODINGS_KEPT_TENSORS_H_
#define LENGTHWISE_MODELS_ENCODINGS_KEPT_TENSORS_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "ATen/core/Tensor.h"
#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"

namespace lengthwise::models {

// Numbers of an encoding that never change. Brings them to a device once: a copy for each use would
// make the host wait, and a step that waits cannot be recorded. Methods may be called from any
// thread.
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

// Holds the last tensor that was made of positions. Methods may be called from any thread.
class MadeOfPositions {
 public:
  // make(), or what it gave last where that was for the same numbers. What is made must need no
  // gradient and depend on nothing but the positions and `dtype`. Numbers on a GPU would have to be
  // waited for; there, the same are the same tensor, not written to since.
  at::Tensor Get(const at::Tensor& positions, at::ScalarType dtype,
                 const std::function<at::Tensor()>& make);

 private:
  bool AreTheLast(const at::Tensor& positions) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  platform::Mutex mutex_;
  // On a CPU a copy: a batch's memory is another batch's soon.
  at::Tensor positions_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  at::Tensor made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_KEPT_TENSORS_H_
