// Actions that wait while somebody needs things as they are. What they do they look up when they
// run, which may be long after they were meant.
#ifndef LENGTHWISE_SERVER_COORDINATION_DEFERRED_ACTIONS_H_
#define LENGTHWISE_SERVER_COORDINATION_DEFERRED_ACTIONS_H_

#include <functional>
#include <utility>
#include <vector>

#include "platform/mutex.h"

namespace lengthwise::server {

// Thread-safe.
class DeferredActions {
 public:
  // Runs the action now or, between Hold and Release, keeps it.
  void Run(std::function<void()> action) {
    {
      platform::MutexLock lock(mutex_);
      if (held_) {
        waiting_.push_back(std::move(action));
        return;
      }
    }
    action();
  }

  // False when it is held already.
  bool Hold() {
    platform::MutexLock lock(mutex_);
    return !std::exchange(held_, true);
  }
  // Gives what was kept to the caller, who sees to it that each is given to Run again.
  [[nodiscard]] std::vector<std::function<void()>> Release() {
    platform::MutexLock lock(mutex_);
    held_ = false;
    return std::exchange(waiting_, {});
  }

 private:
  platform::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_DEFERRED_ACTIONS_H_
