#include "worker/training/core_sharing.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lengthwise::worker::training {
namespace {

// Long enough that one short interruption is not sharing, short against a retry's second.
constexpr absl::Duration kPeriod = absl::Milliseconds(200);
// Below this use of a core, nothing is trained and nothing is learned from a sample.
constexpr double kLeastUse = 0.1;

}  // namespace

bool CoreSharing::Update(absl::Duration time, const platform::SchedulingTimes& times) {
  const double seconds = absl::ToDoubleSeconds(time - last_time_.value_or(time));
  const double running = times.running_seconds - last_.running_seconds;
  const double waiting = times.waiting_seconds - last_.waiting_seconds;
  last_time_ = time;
  last_ = times;
  // Threads that ended take their times with them.
  const bool used =
      seconds > 0 && running >= 0 && waiting >= 0 && running + waiting > kLeastUse * seconds;
  if (used) waited_fraction_ = waiting / (running + waiting);
  const absl::Duration unchanged = time - changed_;
  if (shared_) {
    if (unchanged < retry_) return true;
    shared_ = false;
    retry_ = std::min(2 * retry_, kLastRetry);
    changed_ = time;
  } else if (used && waited_fraction_ > kSharedFraction) {
    shared_ = true;
    changed_ = time;
  } else if (unchanged >= kSettled) {
    retry_ = kFirstRetry;
  }
  return shared_;
}

CoreSharingMonitor::CoreSharingMonitor(int threads, std::function<void(bool, double)> notify)
    : threads_(threads), notify_(std::move(notify)), thread_([this] { Watch(); }) {}

CoreSharingMonitor::~CoreSharingMonitor() {
  {
    platform::MutexLock lock(mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

bool CoreSharingMonitor::Sleep(absl::Duration time) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(time);
  platform::MutexLock lock(mutex_);
  while (!ends_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return !ends_;
}

void CoreSharingMonitor::Watch() {
  CoreSharing sharing;
  std::unique_ptr<PassiveWaiting> passive;
  bool told = false;
  absl::Duration exclusive = absl::ZeroDuration();
  do {
    const std::optional<platform::SchedulingTimes> times = platform::ReadSchedulingTimes();
    if (!times.has_value()) {
      passive = std::make_unique<PassiveWaiting>(threads_);
      while (Sleep(absl::Hours(1))) {
      }
      return;
    }
    const absl::Duration now =
        absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
    const bool shared = sharing.Update(now, *times);
    if (shared && passive == nullptr) passive = std::make_unique<PassiveWaiting>(threads_);
    if (!shared) passive.reset();
    exclusive = shared ? absl::ZeroDuration() : exclusive + kPeriod;
    if (shared ? !told : told && exclusive >= CoreSharing::kSettled) {
      told = shared;
      notify_(shared, sharing.waited_fraction());
    }
  } while (Sleep(kPeriod));
}

}  // namespace lengthwise::worker::training
