// Runs a task periodically on its own thread.
#ifndef LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_
#define LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

class PeriodicThread {
 public:
  // Calls `work` on its own thread, `interval` after the start and after the end of each call,
  // until it returns false or the object is destroyed.
  PeriodicThread(absl::Duration interval, std::function<bool()> work)
      : interval_(interval), work_(std::move(work)), thread_([this] { Run(); }) {}
  // Waits for a running call.
  ~PeriodicThread() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  void Run() {
    while (Sleep() && work_()) {
    }
  }

  // Sleeps for the interval. Returns false if the thread must stop.
  bool Sleep() {
    const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(interval_);
    MutexLock lock(mutex_);
    while (!stopping_ && std::chrono::steady_clock::now() < end) changed_.WaitUntil(mutex_, end);
    return !stopping_;
  }

  const absl::Duration interval_;
  const std::function<bool()> work_;

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the other members at once
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_
