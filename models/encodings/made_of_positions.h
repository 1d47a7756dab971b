// What an encoding makes of positions, made once for all blocks of a network, which share them.
#ifndef LENGTHWISE_MODELS_ENCODINGS_MADE_OF_POSITIONS_H_
#define LENGTHWISE_MODELS_ENCODINGS_MADE_OF_POSITIONS_H_

#include <cstdint>
#include <functional>

#include "ATen/core/Tensor.h"
#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"

namespace lengthwise::models {

// Holds the last tensor that was made. Methods may be called from any thread.
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

#endif  // LENGTHWISE_MODELS_ENCODINGS_MADE_OF_POSITIONS_H_
