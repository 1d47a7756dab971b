// WorkPool: a few threads for work that must not run on the threads of others, such as gRPC's:
// reads of the store and of files, and TLS handshakes. Clients take turns.
#ifndef LENGTHWISE_PLATFORM_WORK_POOL_H_
#define LENGTHWISE_PLATFORM_WORK_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

// Thread-safe. Each task belongs to a lane, for example to a client. A lane's tasks start in the
// order of submission; lanes take turns. One lane uses all threads but one, so that other lanes
// wait for none of its tasks. A task must not wait for a client.
class WorkPool {
 public:
  // Maximum number of tasks with a `too_late` that wait in one lane.
  static constexpr size_t kMostWaiting = 100;

  // A task with a `too_late` expires if it waits longer than `longest_wait`.
  explicit WorkPool(int threads, absl::Duration longest_wait = absl::InfiniteDuration());
  // Runs all queued tasks, then ends the threads. Only tasks may still submit tasks.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Runs `task`, or `too_late` instead if the task has expired. Returns false, and runs neither, if
  // the task has a `too_late` and its lane is full.
  bool Submit(const std::string& lane, std::function<void()> task,
              std::function<void()> too_late = nullptr);

  absl::Duration longest_wait() const { return longest_wait_; }

 private:
  struct Task {
    std::function<void()> run;
    std::function<void()> too_late;
    absl::Time submitted;  // set only for tasks that can expire
  };
  struct Lane {
    std::deque<Task> tasks;
    size_t running = 0;
  };

  void Run();

  const absl::Duration longest_wait_;
  const size_t most_of_a_lane_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::string, Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  // The lanes with waiting tasks; the one that has waited longest for its turn is first.
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_WORK_POOL_H_
