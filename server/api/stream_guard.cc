#include "server/api/stream_guard.h"

#include <chrono>

namespace lengthwise::server {

StreamGuard::StreamGuard(OpenStreams& streams, Gate& gate, absl::Duration interval)
    : streams_(streams), gate_(gate), interval_(interval), thread_([this] { Run(); }) {}

StreamGuard::~StreamGuard() {
  {
    platform::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void StreamGuard::Run() {
  while (true) {
    {
      platform::MutexLock lock(mutex_);
      const auto next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(interval_);
      while (!stopping_ && std::chrono::steady_clock::now() < next) {
        changed_.WaitUntil(mutex_, next);
      }
      if (stopping_) return;
    }
    streams_.StopRefused([this](const Caller& caller) { return gate_.Recheck(caller); });
  }
}

}  // namespace lengthwise::server
