#include "platform/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "platform/status_macros.h"

extern char** environ;

namespace lengthwise::platform {
namespace {

// Returns the parent's environment with `added` first, so that added variables take precedence.
std::vector<std::string> Environment(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> result;
  result.reserve(added.size());
  for (const auto& [name, value] : added) result.push_back(absl::StrCat(name, "=", value));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text(*entry);
    const absl::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(added.begin(), added.end(),
                                      [&](const auto& pair) { return pair.first == name; });
    if (!replaced) result.emplace_back(text);
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Runs between fork and exec, so it makes only async-signal-safe calls: other threads' locks may be
// held. Reports errno through `error_pipe`, which closes by itself if exec succeeds.
[[noreturn]] void BecomeProgram(char* const* arguments, char* const* environment, int input,
                                int output, int error_output, int death_signal, bool own_group,
                                pid_t parent, int error_pipe) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGWINCH, SIGXFSZ}) {
    std::signal(signal, SIG_DFL);
  }
  if (own_group) setpgid(0, 0);
  if (death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, death_signal);
    // The parent may have died before prctl took effect.
    if (getppid() != parent) _exit(127);
  }
  if (dup2(input, STDIN_FILENO) >= 0 && (output < 0 || dup2(output, STDOUT_FILENO) >= 0) &&
      (error_output < 0 || dup2(error_output, STDERR_FILENO) >= 0)) {
    execvpe(arguments[0], arguments, environment);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(error_pipe, &error, sizeof(error));
  _exit(127);
}

}  // namespace

std::string ChildProcess::Exit::ToString() const {
  if (signal != 0) {
    return absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
  }
  return absl::StrCat("exited with code ", code);
}

absl::StatusOr<Pipe> Pipe::Open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  return Pipe{.read_end = Descriptor(ends[0]), .write_end = Descriptor(ends[1])};
}

ChildProcess::ChildProcess(pid_t pid) : pid_(pid) {
#ifdef SYS_pidfd_open
  pid_descriptor_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
#endif
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Options& options) {
  if (options.arguments.empty()) return absl::InvalidArgumentError("no program to start");
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = Environment(options.environment);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> environment_pointers = Pointers(environment);

  ASSIGN_OR_RETURN(Pipe errors, Pipe::Open());
  const Descriptor input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.is_open()) return absl::ErrnoToStatus(errno, "cannot open /dev/null");
  Descriptor output;
  if (!options.output_file.empty()) {
    // O_NONBLOCK: does not wait for the other end of a pipe.
    output = Descriptor(open(options.output_file.c_str(),
                             O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644));
    if (!output.is_open()) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", options.output_file));
    }
  }

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (pid == 0) {
    BecomeProgram(argument_pointers.data(), environment_pointers.data(),
                  options.input_descriptor >= 0 ? options.input_descriptor : input.get(),
                  output.is_open() ? output.get() : options.output_descriptor,
                  output.is_open() ? output.get() : options.error_descriptor,
                  options.parent_death_signal, options.own_process_group, parent,
                  errors.write_end.get());
  }
  std::unique_ptr<ChildProcess> child(new ChildProcess(pid));
  errors.write_end = Descriptor();
  int error = 0;
  ssize_t got;
  do {
    got = read(errors.read_end.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    child->WaitFor(absl::InfiniteDuration());
    return absl::ErrnoToStatus(error, absl::StrCat("cannot execute ", options.arguments[0]));
  }
  return child;
}

absl::StatusOr<ChildProcess::Output> ChildProcess::Run(std::vector<std::string> arguments,
                                                       absl::Duration timeout) {
  // A file in memory instead of a pipe: the program never blocks on its reader, and surviving
  // children of the program do not keep the reader waiting.
  const Descriptor file(memfd_create("output", MFD_CLOEXEC));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, "cannot make a file in memory");
  ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child, Start({.arguments = std::move(arguments),
                                                               .output_descriptor = file.get(),
                                                               .error_descriptor = file.get()}));
  Output output;
  output.exit = child->WaitFor(timeout);
  child.reset();  // ends all writing
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got =
        pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(output.text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot read a program's output");
    if (got == 0) return output;
    output.text.append(buffer.data(), static_cast<size_t>(got));
  }
}

ChildProcess::~ChildProcess() {
  if (!Poll().has_value() && !detached_) {
    Signal(SIGKILL);
    WaitFor(absl::InfiniteDuration());
  }
}

std::optional<ChildProcess::Exit> ChildProcess::WaitFor(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!exit_.has_value()) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      exit_ = WIFSIGNALED(status) ? Exit{.signal = WTERMSIG(status)}
                                  : Exit{.code = WEXITSTATUS(status)};
      break;
    }
    if (ended < 0 && errno != EINTR) {
      exit_ = Exit{.code = 127};  // reaped by other code, so the status is lost
      break;
    }
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return std::nullopt;
    // Without pidfd in the kernel, polls.
    const absl::Duration longest =
        pid_descriptor_.is_open() ? absl::Seconds(60) : absl::Milliseconds(10);
    pollfd wait_for = {.fd = pid_descriptor_.get(), .events = POLLIN};
    poll(&wait_for, pid_descriptor_.is_open() ? 1 : 0,
         static_cast<int>(absl::ToInt64Milliseconds(std::min(left, longest))) + 1);
  }
  return exit_;
}

void ChildProcess::Signal(int signal) {
  if (!exit_.has_value()) kill(pid_, signal);
}

ChildProcess::Exit ChildProcess::Terminate(absl::Duration grace) {
  Signal(SIGTERM);
  if (const auto exit = WaitFor(grace); exit.has_value()) return *exit;
  Signal(SIGKILL);
  return *WaitFor(absl::InfiniteDuration());
}

}  // namespace lengthwise::platform
