#include "platform/service_lifecycle.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "platform/descriptors.h"

namespace lengthwise::platform {
namespace {

// Wakes the thread for the destructor. Nothing else sends this signal.
constexpr int kWakeUp = SIGURG;

sigset_t WaitedFor() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, kWakeUp}) sigaddset(&signals, signal);
  return signals;
}

absl::Status Notify(const std::string& message) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || *path == '\0') return absl::OkStatus();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = std::strlen(path);
  if ((path[0] != '/' && path[0] != '@') || length >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("NOTIFY_SOCKET is \"", path, "\", which is not a socket's path"));
  }
  std::memcpy(address.sun_path, path, length);
  // Abstract socket names begin with a zero byte and are not zero-terminated.
  if (path[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  const Descriptor connection(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!connection.is_open()) return absl::ErrnoToStatus(errno, "cannot make a socket");
  const ssize_t sent = sendto(connection.get(), message.data(), message.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), size);
  if (sent == static_cast<ssize_t>(message.size())) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot notify the service manager at ", path));
}

}  // namespace

TerminationSignals::TerminationSignals() : has_terminal_(isatty(STDERR_FILENO) == 1) {
  const sigset_t signals = WaitedFor();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { Run(); });
}

TerminationSignals::~TerminationSignals() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  pthread_kill(thread_.native_handle(), kWakeUp);
  thread_.join();
}

void TerminationSignals::OnFirst(std::function<void(int)> handler) {
  MutexLock lock(mutex_);
  handler_ = std::move(handler);
  if (first_ != 0 && !called_ && handler_) {
    called_ = true;
    handler_(first_);
  }
}

void TerminationSignals::Run() {
  const sigset_t signals = WaitedFor();
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == kWakeUp) {
      MutexLock lock(mutex_);
      if (stopping_) return;
      continue;
    }
    if (signal == SIGHUP && !has_terminal_) continue;
    MutexLock lock(mutex_);
    // Cluster managers repeat SIGTERM, which must not interrupt the shutdown begun by the first.
    if (first_ == SIGTERM && signal == SIGTERM) continue;
    if (first_ != 0 && signal == SIGHUP) continue;
    if (first_ != 0) _exit(128 + signal);
    first_ = signal;
    if (handler_) {
      called_ = true;
      handler_(signal);
    }
  }
}

pid_t StartingProcess() {
  const char* const told = std::getenv("LENGTHWISE_PARENT");
  pid_t starter = 0;
  return told != nullptr && absl::SimpleAtoi(told, &starter) ? starter : getppid();
}

absl::Status EndWithParent(pid_t starter) {
  // In this order: the signal is sent only for a parent that ends after the request.
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) {
    return absl::ErrnoToStatus(errno, "cannot ask for a signal at the parent's end");
  }
  if (getppid() != starter) return absl::CancelledError("the parent process has ended");
  return absl::OkStatus();
}

absl::Status NotifyReady(absl::string_view status) {
  // A newline would end the field of the protocol.
  return Notify(absl::StrCat("READY=1\nSTATUS=", absl::StrReplaceAll(status, {{"\n", " "}})));
}

absl::Status NotifyStopping() { return Notify("STOPPING=1"); }

}  // namespace lengthwise::platform
