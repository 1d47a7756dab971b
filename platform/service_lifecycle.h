// The start and end of a service process: it reports its state to the service manager, and shuts
// down gracefully when a signal asks it to.
#ifndef LENGTHWISE_PLATFORM_SERVICE_LIFECYCLE_H_
#define LENGTHWISE_PLATFORM_SERVICE_LIFECYCLE_H_

#include <sys/types.h>

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

// Handles SIGTERM and SIGINT: the first requests a graceful shutdown, the second exits at once. A
// SIGTERM after a SIGTERM is ignored: supervisors repeat it, and can use SIGKILL. SIGHUP counts as
// SIGTERM in a process whose stderr was a terminal, which has been closed. To others it is a
// request to read files again, which these programs do by themselves, and is ignored.
//
// Create it first in main, while there is a single thread. It blocks the signals in the calling
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

  const bool has_terminal_;
  Mutex mutex_;
  int first_ ABSL_GUARDED_BY(mutex_) = 0;
  bool called_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void(int)> handler_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Returns the process that started this one: $LENGTHWISE_PARENT, which a process may set for its
// children, or the parent now. The latter is another one if the first has ended while this
// program's libraries were loaded. Call it first in main.
pid_t StartingProcess();

// Requests SIGTERM for the end of the parent process. CANCELLED if that is not `starter` any more,
// because it has ended.
absl::Status EndWithParent(pid_t starter);

// Notifies the service manager (systemd), by the protocol of sd_notify(3), that the service is
// ready; `status` is a line for `systemctl status`. Both notifications are no-ops without a service
// manager
// ($NOTIFY_SOCKET is not set), and return an error, which callers may ignore, if it cannot be
// reached.
absl::Status NotifyReady(absl::string_view status);

// Notifies the service manager that the service is stopping.
absl::Status NotifyStopping();

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_SERVICE_LIFECYCLE_H_
