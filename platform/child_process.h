// Runs a child process that never outlives its parent, even if the parent is killed.
#ifndef LENGTHWISE_PLATFORM_CHILD_PROCESS_H_
#define LENGTHWISE_PLATFORM_CHILD_PROCESS_H_

#include <sys/types.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/descriptors.h"

namespace lengthwise::platform {

// Both ends of a pipe. Programs that are started do not inherit them.
struct Pipe {
  static absl::StatusOr<Pipe> Open();

  Descriptor read_end;
  Descriptor write_end;
};

// Not thread-safe. Linux ties the parent's death signal to the thread that started the child: start
// children from a thread that lives as long as they should (the main thread).
class ChildProcess {
 public:
  struct Options {
    // The program's path, then its arguments. A path without a slash is looked up in PATH.
    std::vector<std::string> arguments;
    // Added to the parent's environment.
    std::vector<std::pair<std::string, std::string>> environment = {};
    // Open descriptor that becomes standard input; -1: /dev/null. The caller still owns it.
    int input_descriptor = -1;
    // File to which standard output and error are appended. Empty: inherited from the parent.
    std::string output_file = {};
    // Without `output_file`: open descriptors that become standard output and error. The caller
    // still owns them. -1: inherited from the parent.
    int output_descriptor = -1;
    int error_descriptor = -1;
    // Signal that the kernel sends to the child when the parent's thread ends; 0 for none.
    int parent_death_signal = SIGKILL;
    // Puts the child into its own process group, so that Ctrl-C reaches only the parent.
    bool own_process_group = true;
  };

  // Exit status: the exit code, or the signal that killed the process.
  struct Exit {
    int code = 0;
    int signal = 0;
    bool ok() const { return code == 0 && signal == 0; }
    bool operator==(const Exit&) const = default;
    // "exited with code 3", "was killed by signal 9 (Killed)".
    std::string ToString() const;
  };

  // Everything that a program wrote to standard output and error.
  struct Output {
    std::string text;
    // nullopt if the program timed out and was killed.
    std::optional<Exit> exit;
  };
  // Runs a program and waits for its exit. Kills it after `timeout`. Errors are those of Start.
  static absl::StatusOr<Output> Run(std::vector<std::string> arguments, absl::Duration timeout);

  // Starts a program. NOT_FOUND if there is no such program,
  // PERMISSION_DENIED if it cannot be executed; other errors of fork, exec and the output file.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);

  // Kills the process if it still runs, and waits for its exit, unless Detach was called.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Waits for the process's exit, for at most `timeout`. Returns nullopt if it still runs.
  std::optional<Exit> WaitFor(absl::Duration timeout);
  std::optional<Exit> Poll() { return WaitFor(absl::ZeroDuration()); }

  // Lets the process run on after this object's end.
  void Detach() { detached_ = true; }

  // Sends a signal. No-op if the process has exited.
  void Signal(int signal);

  // Sends SIGTERM, then SIGKILL if the process has not exited within `grace`. Returns its exit
  // status.
  Exit Terminate(absl::Duration grace);

 private:
  explicit ChildProcess(pid_t pid);

  const pid_t pid_;
  // Becomes readable when the process exits. Closed if the kernel has no pidfd.
  Descriptor pid_descriptor_;
  std::optional<Exit> exit_;
  bool detached_ = false;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_CHILD_PROCESS_H_
