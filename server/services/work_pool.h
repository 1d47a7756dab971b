// A few threads for what must not run on gRPC's threads: reads of the store and of files.
#ifndef LENGTHWISE_SERVER_SERVICES_WORK_POOL_H_
#define LENGTHWISE_SERVER_SERVICES_WORK_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "platform/mutex.h"

namespace lengthwise::server {

// Thread-safe. Runs tasks in the order in which they came, several at a time.
class WorkPool {
 public:
  explicit WorkPool(int threads);
  // Runs what is queued, then ends the threads. Nothing may be submitted from outside meanwhile;
  // tasks may.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  void Submit(std::function<void()> task);

 private:
  void Run();

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_WORK_POOL_H_
