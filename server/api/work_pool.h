// A few threads for what must not run on gRPC's threads: reads of the store and of files.
#ifndef LENGTHWISE_SERVER_API_WORK_POOL_H_
#define LENGTHWISE_SERVER_API_WORK_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::server {

// Thread-safe. Runs tasks in the order in which they came, several at a time. No task may wait for
// a client.
class WorkPool {
 public:
  // A task that waits for its turn longer than `longest_wait` is too late, if it says what to do
  // then.
  explicit WorkPool(int threads, absl::Duration longest_wait = absl::InfiniteDuration());
  // Runs what is queued, then ends the threads. Nothing may be submitted from outside meanwhile;
  // tasks may.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Runs `task`, or `too_late` in its place.
  void Submit(std::function<void()> task, std::function<void()> too_late = nullptr);

  absl::Duration longest_wait() const { return longest_wait_; }

 private:
  struct Task {
    std::function<void()> run;
    std::function<void()> too_late;
    absl::Time submitted;  // only where it can be too late
  };

  void Run();

  const absl::Duration longest_wait_;
  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_WORK_POOL_H_
