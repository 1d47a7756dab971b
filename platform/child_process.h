// A child process that never outlives its parent: not when it is forgotten, not when the parent is
// killed.
#ifndef LENGTHWISE_PLATFORM_CHILD_PROCESS_H_
#define LENGTHWISE_PLATFORM_CHILD_PROCESS_H_

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lengthwise::platform {

// Not thread-safe. Linux ties the parent's death signal to the thread that started the child: start
// children from a thread that lives as long as they should (the main thread).
class ChildProcess {
 public:
  struct Options {
    // The program's path, then its arguments. A path without a slash is looked up in PATH.
    std::vector<std::string> arguments;
    // Added to the parent's environment.
    std::vector<std::pair<std::string, std::string>> environment = {};
    // Standard output and error are appended to this file; empty: they are the parent's.
    std::string output_file = {};
    // Where there is no such file: open descriptors that become standard output and error. They
    // stay the caller's to close. -1: the parent's.
    int output_descriptor = -1;
    int error_descriptor = -1;
    // What the kernel sends to the child when the parent's thread ends; 0 for nothing.
    int parent_death_signal = SIGKILL;
    // In a process group of its own, so that Ctrl-C at the terminal reaches the parent alone.
    bool own_process_group = true;
  };

  // How it ended: the exit code of a process that exited, the signal of one that was killed.
  struct Exit {
    int code = 0;
    int signal = 0;
    bool ok() const { return code == 0 && signal == 0; }
    bool operator==(const Exit&) const = default;
    // "exited with code 3", "was killed by signal 9 (Killed)".
    std::string ToString() const;
  };

  // What a program wrote to standard output and error until it ended.
  struct Output {
    std::string text;
    // nullopt for a program that did not end in time; it was killed.
    std::optional<Exit> exit;
  };
  // Runs a program to its end, or for `timeout` at most. Errors are those of Start.
  static absl::StatusOr<Output> Run(std::vector<std::string> arguments, absl::Duration timeout);

  // NOT_FOUND when there is no such program, PERMISSION_DENIED when it cannot be executed, and
  // other errors of fork and exec; the output file's errors, too. Standard input is /dev/null.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);

  // Kills the process where it still runs, and waits for its end.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // How it ended; nullopt while it runs. Ends no sooner than the process or the time given.
  std::optional<Exit> WaitFor(absl::Duration timeout);
  std::optional<Exit> Poll() { return WaitFor(absl::ZeroDuration()); }

  // Sends a signal; does nothing to a process that has ended.
  void Signal(int signal);

  // Sends SIGTERM, and SIGKILL where the process has not ended within `grace`; returns how it
  // ended.
  Exit Terminate(absl::Duration grace);

 private:
  explicit ChildProcess(pid_t pid);

  const pid_t pid_;
  // Becomes readable when the process ends; -1 where the kernel has none.
  int pid_descriptor_ = -1;
  std::optional<Exit> exit_;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_CHILD_PROCESS_H_
