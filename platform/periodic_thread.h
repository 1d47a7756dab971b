// Runs a task periodically on its own thread.
#ifndef LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_
#define LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

class PeriodicThread {
 public:
  // Calls `work` on its own thread, `interval` after the start and after the end of each call,
  // until it returns false or the object is destroyed.
  PeriodicThread(absl::Duration interval, std::function<bool()> work);
  // Waits for a running call.
  ~PeriodicThread();
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  void Run();
  // Sleeps for the interval. Returns false if the thread must stop.
  bool Sleep();

  const absl::Duration interval_;
  const std::function<bool()> work_;

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_
