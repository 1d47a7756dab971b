// WorkPool: a few threads for work that must not run on gRPC's threads: reads of the store and of
// files.
#ifndef LENGTHWISE_SERVER_API_WORK_POOL_H_
#define LENGTHWISE_SERVER_API_WORK_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::server {

// Thread-safe. Starts tasks in the order of submission, several at a time. A task must not wait for
// a client.
class WorkPool {
 public:
  // A task with a `too_late` expires if it waits longer than `longest_wait`.
  explicit WorkPool(int threads, absl::Duration longest_wait = absl::InfiniteDuration());
  // Runs all queued tasks, then ends the threads. Only tasks may still submit tasks.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Runs `task`, or `too_late` instead if the task has expired.
  void Submit(std::function<void()> task, std::function<void()> too_late = nullptr);

  absl::Duration longest_wait() const { return longest_wait_; }

 private:
  struct Task {
    std::function<void()> run;
    std::function<void()> too_late;
    absl::Time submitted;  // set only for tasks that can expire
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
