// Runs a task periodically on its own thread.
#ifndef LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_
#define LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/time/time.h"

namespace lengthwise::platform {

class PeriodicThread {
 public:
  // Calls `work` on its own thread, `interval` after the start and after the end of each call,
  // until it returns false or the object is destroyed. The destructor waits for a running call.
  PeriodicThread(absl::Duration interval, std::function<bool()> work)
      : thread_([interval, work = std::move(work)](const std::stop_token& stop) {
          std::mutex mutex;
          std::unique_lock<std::mutex> lock(mutex);
          std::condition_variable_any stopped;
          const auto stops = [&stop] { return stop.stop_requested(); };
          // With GCC 12, wait_for may return false if the request to stop comes as the wait begins.
          do {
            stopped.wait_for(lock, stop, absl::ToChronoNanoseconds(interval), stops);
          } while (!stops() && work());
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PERIODIC_THREAD_H_
