#include "server/self_check.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/log.h"

namespace lengthwise::server {

SelfCheck::SelfCheck(absl::Duration interval, std::function<absl::Status()> check,
                     std::function<void(const absl::Status&)> give_up)
    : interval_(interval),
      check_(std::move(check)),
      give_up_(std::move(give_up)),
      thread_([this] { Run(); }) {}

SelfCheck::~SelfCheck() {
  {
    platform::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void SelfCheck::Run() {
  int failures = 0;
  while (true) {
    {
      platform::MutexLock lock(mutex_);
      const auto next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(interval_);
      while (!stopping_ && std::chrono::steady_clock::now() < next) {
        changed_.WaitUntil(mutex_, next);
      }
      if (stopping_) return;
    }
    const absl::Status status = check_();
    if (status.ok()) {
      failures = 0;
      continue;
    }
    platform::LogWarning(
        absl::StrCat("the server cannot be reached from its own machine: ", status.message()));
    if (++failures == kFailures) return give_up_(status);
  }
}

}  // namespace lengthwise::server
