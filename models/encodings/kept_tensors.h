// Tensors that encodings cache between steps.
#ifndef LENGTHWISE_MODELS_ENCODINGS_KEPT_TENSORS_H_
#define LENGTHWISE_MODELS_ENCODINGS_KEPT_TENSORS_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "ATen/core/Tensor.h"
#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"

namespace lengthwise::models {

// Constant numbers of an encoding, cached on the device. A copy at each use would make the host
// wait, and a step in which the host waits cannot be recorded as a CUDA graph. Thread-safe.
class Constant {
 public:
  // `host` is a CPU tensor.
  explicit Constant(at::Tensor host) : host_(std::move(host)) {}

  at::Tensor On(const at::Device& device) const;

 private:
  const at::Tensor host_;
  mutable platform::Mutex mutex_;
  // Copy on the device of the last call.
  mutable at::Tensor copy_ ABSL_GUARDED_BY(mutex_);
};

// Cache of the last tensor computed from positions. Thread-safe.
class MadeOfPositions {
 public:
  // Returns make(), or its last result if that was for the same positions and `dtype`. The result
  // must need no gradient and depend on nothing else. On a CPU, positions are compared by value. On
  // a GPU the host would have to wait for the values, so only the same tensor, not written to
  // since, is the same.
  at::Tensor Get(const at::Tensor& positions, at::ScalarType dtype,
                 const std::function<at::Tensor()>& make);

 private:
  bool AreTheLast(const at::Tensor& positions) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  platform::Mutex mutex_;
  // Cloned on a CPU, because the next batch may reuse the batch's memory.
  at::Tensor positions_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  at::Tensor made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_ENCODINGS_KEPT_TENSORS_H_
