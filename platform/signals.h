// SIGTERM and SIGINT as a request: the first asks the program to end well, the second ends it at
// once, unless both are SIGTERM: supervisors repeat it, and have SIGKILL.
#ifndef LENGTHWISE_PLATFORM_SIGNALS_H_
#define LENGTHWISE_PLATFORM_SIGNALS_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

// Made first in main, while there is one thread: it blocks both signals in the calling thread,
// which every later thread inherits, and takes them on a thread of its own, so that handlers may
// lock, allocate and log. One per process; lives until the process ends.
class TerminationSignals {
 public:
  TerminationSignals();
  // Does not return the signals to their defaults: what comes while the process ends is ignored.
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  // `handler` is called once, with the first signal's number: on the signals' thread, or at once on
  // the caller's when the signal has come already. It must not block. A null handler takes the one
  // before away; when this returns, that is not running. A second signal ends the process with
  // _exit(128 + signal), whether there is a handler or not; a SIGTERM after a SIGTERM does nothing.
  void OnFirst(std::function<void(int)> handler);

 private:
  void Run();

  Mutex mutex_;
  int first_ ABSL_GUARDED_BY(mutex_) = 0;
  bool called_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void(int)> handler_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_SIGNALS_H_
