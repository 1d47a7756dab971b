#include "platform/signals.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

namespace lengthwise::platform {
namespace {

// Wakes the thread for the destructor. Nothing else sends this signal.
constexpr int kWakeUp = SIGURG;

sigset_t WaitedFor() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, kWakeUp);
  return signals;
}

}  // namespace

TerminationSignals::TerminationSignals() {
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
    MutexLock lock(mutex_);
    // Cluster managers repeat SIGTERM, which must not interrupt the shutdown begun by the first.
    if (first_ == SIGTERM && signal == SIGTERM) continue;
    if (first_ != 0) _exit(128 + signal);
    first_ = signal;
    if (handler_) {
      called_ = true;
      handler_(signal);
    }
  }
}

}  // namespace lengthwise::platform
