#include "worker/training/core_sharing.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

// Without OpenMP, PassiveWaiting's team would have one thread and no effect.
#ifndef _OPENMP
#error "compile this file with -fopenmp"
#endif

namespace lengthwise::worker::training {
namespace {

// Long enough that a 50 ms interruption does not count as sharing, and short compared to the first
// retry, after one second.
constexpr absl::Duration kPeriod = absl::Milliseconds(400);
// Threads that want a core for less of the time do not train.
constexpr double kLeastUse = 0.1;

// Returns the maximum over busy threads.
double WaitedFraction(const CoreSharing::Times& before, const CoreSharing::Times& after,
                      double seconds) {
  double most = 0;
  for (const auto& [thread, times] : after) {
    const auto found = before.find(thread);
    if (found == before.end()) continue;
    const double running = times.running_seconds - found->second.running_seconds;
    const double waiting = times.waiting_seconds - found->second.waiting_seconds;
    if (running + waiting > kLeastUse * seconds) {
      most = std::max(most, waiting / (running + waiting));
    }
  }
  return most;
}

absl::Duration Now() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

PassiveWaiting::PassiveWaiting(int threads) {
  // Together with the kernels' threads this is one more than the CPUs. OpenMP does not count a
  // team's first thread.
  const int team = std::max(2, omp_get_num_procs() - threads + 2);
  holder_ = std::thread([this, team] { HoldTeam(team); });
  started_.get_future().wait();
}

PassiveWaiting::~PassiveWaiting() {
  ends_.set_value();
  holder_.join();
}

void PassiveWaiting::HoldTeam(int threads) {
  // The sum keeps the compiler from removing the loop. ThreadSanitizer cannot see OpenMP's barrier
  // at its end, so the sum orders the team's end before the rest of this function as well.
  std::atomic<int> members = 0;
#pragma omp parallel num_threads(threads)
  members.fetch_add(1, std::memory_order_release);
  if (members.load(std::memory_order_acquire) > 0) started_.set_value();
  ends_.get_future().wait();
}

bool CoreSharing::Update(absl::Duration time, const Times& times) {
  waited_fraction_ = WaitedFraction(last_, times, absl::ToDoubleSeconds(time - last_time_));
  last_time_ = time;
  last_ = times;
  const absl::Duration unchanged = time - changed_;
  if (shared_) {
    if (unchanged < retry_) return true;
    shared_ = false;
    retry_ = std::min(2 * retry_, kLastRetry);
    changed_ = time;
  } else if (waited_fraction_ >= kSharedFraction) {
    shared_ = true;
    changed_ = time;
  } else if (unchanged >= kSettled) {
    retry_ = kFirstRetry;
  }
  return shared_;
}

ThreadChoice::ThreadChoice(int threads) {
  for (const int count : {1, (threads + 1) / 2, threads}) {
    if (candidates_.empty() || count > candidates_.back().threads) {
      candidates_.push_back({.threads = count, .duration = absl::ZeroDuration(), .steps = 0});
    }
  }
  tried_ = candidates_.size();
}

bool ThreadChoice::IsTried() const {
  const Candidate& candidate = candidates_[tried_];
  if (candidate.duration < kTry) return false;
  return candidate.steps >= kTrySteps ||
         (tried_ > 0 && candidate.duration >= 2 * kTrySteps * Step(best_));
}

int ThreadChoice::Next(absl::Duration time, bool shared) {
  counts_ = false;
  if (!shared || candidates_.size() == 1) return candidates_.back().threads;
  if (tried_ == candidates_.size()) {
    if (time < valid_until_) return candidates_[best_].threads;
    for (Candidate& candidate : candidates_) {
      candidate.duration = absl::ZeroDuration();
      candidate.steps = 0;
    }
    tried_ = best_ = 0;
  } else if (IsTried()) {
    if (Step(tried_) < Step(best_)) best_ = tried_;
    if (++tried_ == candidates_.size()) {
      absl::Duration tries;
      for (const Candidate& candidate : candidates_) tries += candidate.duration;
      valid_until_ = time + std::max(kValid, 9 * tries);
      return candidates_[best_].threads;
    }
  }
  counts_ = true;
  return candidates_[tried_].threads;
}

void ThreadChoice::CountStep(absl::Duration duration) {
  if (!counts_) return;
  candidates_[tried_].duration += duration;
  ++candidates_[tried_].steps;
}

CoreSharingMonitor::CoreSharingMonitor(int threads, std::function<void(bool, double)> notify)
    : threads_(threads),
      notify_(std::move(notify)),
      choice_(threads),
      thread_([this] { Watch(); }) {}

CoreSharingMonitor::~CoreSharingMonitor() {
  ends_.set_value();
  thread_.join();
}

int CoreSharingMonitor::ThreadsForNextWork() { return choice_.Next(Now(), shared_); }

void CoreSharingMonitor::Watch() {
  const std::future<void> end = ends_.get_future();
  CoreSharing sharing;
  std::optional<PassiveWaiting> passive;
  bool told = false;
  absl::Duration spinning_since = absl::InfiniteDuration();
  do {
    const CoreSharing::Times times = platform::ReadSchedulingTimes();
    const absl::Duration now = Now();
    const bool shared = times.empty() || sharing.Update(now, times);
    if (shared) {
      if (!passive.has_value()) passive.emplace(threads_);
    } else {
      passive.reset();
    }
    shared_ = shared;
    spinning_since = sharing.shared() ? absl::InfiniteDuration() : std::min(spinning_since, now);
    // A retry does not end sharing.
    if (told ? now - spinning_since >= CoreSharing::kSettled : sharing.shared()) {
      told = !told;
      notify_(told, sharing.waited_fraction());
    }
  } while (end.wait_for(absl::ToChronoNanoseconds(kPeriod)) == std::future_status::timeout);
}

}  // namespace lengthwise::worker::training
