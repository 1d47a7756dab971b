// Handles SIGTERM and SIGINT: the first requests a graceful shutdown, the second exits at once. A
// SIGTERM after a SIGTERM is ignored: supervisors repeat it, and can use SIGKILL.
#ifndef LENGTHWISE_PLATFORM_SIGNALS_H_
#define LENGTHWISE_PLATFORM_SIGNALS_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

// Create it first in main, while there is a single thread. It blocks both signals in the calling
// thread, which every later thread inherits, and receives them on its own thread, so that handlers
// may lock, allocate and log. One per process; lives until the process exits.
class TerminationSignals {
 public:
  TerminationSignals();
  // Does not restore the default actions: signals during process exit are ignored.
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  // Sets the handler, which is called once with the first signal's number: on the signal thread, or
  // at once on the caller's if the signal has already arrived. It must not block. A null handler
  // removes the previous one, which is not running once this returns. A second signal exits with
  // _exit(128 + signal), with or without a handler, except for a SIGTERM after a SIGTERM.
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
