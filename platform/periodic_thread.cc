#include "platform/periodic_thread.h"

#include <chrono>
#include <utility>

namespace lengthwise::platform {

PeriodicThread::PeriodicThread(absl::Duration interval, std::function<bool()> work)
    : interval_(interval), work_(std::move(work)), thread_([this] { Run(); }) {}

PeriodicThread::~PeriodicThread() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

bool PeriodicThread::Sleep() {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(interval_);
  MutexLock lock(mutex_);
  while (!stopping_ && std::chrono::steady_clock::now() < end) changed_.WaitUntil(mutex_, end);
  return !stopping_;
}

void PeriodicThread::Run() {
  while (Sleep() && work_()) {
  }
}

}  // namespace lengthwise::platform
