// Detects during training whether other programs use the worker's cores. If so, it makes the
// worker's threads sleep while they wait, so that each program gets a fair share, and measures how
// many threads train fastest. There is no registry of workers: the kernel's accounting for this
// process also covers other users, containers and builds.
#ifndef LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_
#define LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "platform/process_usage.h"

namespace lengthwise::worker::training {

// While an instance exists, OpenMP threads of this process sleep after microseconds of waiting. By
// default GNU's OpenMP spins for milliseconds first. That is fastest on unshared cores, but
// collapses on shared ones, where a spinning thread keeps the other threads of its loop off their
// core.
//
// GNU's OpenMP reads OMP_WAIT_POLICY once, when it is loaded. Afterwards one rule remains
// (GOMP_SPINCOUNT in its manual): while it has more threads than the process has CPUs, threads spin
// at most 100 times. So this class keeps a team of sleeping threads. OMP_WAIT_POLICY and
// GOMP_SPINCOUNT take precedence if a user sets them; other OpenMP libraries are unaffected.
class PassiveWaiting {
 public:
  // `threads`: threads of the kernels, at least 1. Returns when the rule applies.
  explicit PassiveWaiting(int threads);
  ~PassiveWaiting();
  PassiveWaiting(const PassiveWaiting&) = delete;
  PassiveWaiting& operator=(const PassiveWaiting&) = delete;

 private:
  void HoldTeam(int threads);

  std::promise<void> started_;
  std::promise<void> ends_;
  // First thread of the team, which ends with it.
  std::thread holder_;
};

// Decides from samples of the threads' scheduling times whether the cores are shared. They count as
// shared if a busy thread waited for a core for kSharedFraction of the time or more, because all
// threads of a parallel loop then wait for that one. While threads wait passively, their waits do
// not show whether spinning would work. The decision is therefore retried with spinning threads
// after kFirstRetry, then after twice as long each time, up to kLastRetry. Not thread-safe.
class CoreSharing {
 public:
  // One busy loop beside spinning threads raises the fraction to 0.45 or more. Programs that use a
  // tenth of all cores leave it below 0.2, where spinning is still faster.
  static constexpr double kSharedFraction = 0.25;
  static constexpr absl::Duration kFirstRetry = absl::Seconds(1);
  static constexpr absl::Duration kLastRetry = absl::Seconds(30);
  // After this long without sharing, the next retry is after kFirstRetry again.
  static constexpr absl::Duration kSettled = absl::Seconds(2);

  // Times by thread id.
  using Times = std::map<int, platform::SchedulingTimes>;

  // Adds a sample taken at `time`, measured from any fixed moment, and returns shared(). Call it
  // about twice a second.
  bool Update(absl::Duration time, const Times& times);

  bool shared() const { return shared_; }
  // The largest fraction of its time that a busy thread waited for a core between the last two
  // samples. 0 without busy threads.
  double waited_fraction() const { return waited_fraction_; }

 private:
  bool shared_ = false;
  double waited_fraction_ = 0;
  absl::Duration last_time_;
  Times last_;
  // Time of the last change of shared_.
  absl::Duration changed_;
  absl::Duration retry_ = kFirstRetry;
};

// Chooses how many threads train while the cores are shared, by trying one, half and all of them.
// More threads get a larger share of a machine with many programs. But every parallel loop waits
// for the thread that gets a core last, so beside one busy program per core a single thread is
// fastest. Results do not depend on the number of threads. Not thread-safe.
class ThreadChoice {
 public:
  // A try lasts at least this long and this many steps, because step lengths are random; or as long
  // as twice as many steps of the fastest candidate.
  static constexpr absl::Duration kTry = absl::Seconds(1);
  static constexpr int64_t kTrySteps = 20;
  // A choice is measured again after this long, because other programs come and go, but not before
  // tries take less than a tenth of the time.
  static constexpr absl::Duration kValid = absl::Seconds(60);

  // `threads`: number to use on unshared cores, at least 1.
  explicit ThreadChoice(int threads);

  // Returns the number of threads for the next piece of work, starting at `time`, measured from any
  // fixed moment.
  int Next(absl::Duration time, bool shared);
  // Counts a training step that took `duration` with the last result of Next.
  void CountStep(absl::Duration duration);

 private:
  struct Candidate {
    int threads;
    absl::Duration duration;
    int64_t steps;
  };

  absl::Duration Step(size_t candidate) const {
    return candidates_[candidate].duration / candidates_[candidate].steps;
  }
  // Returns true if the current candidate was tried long enough.
  bool IsTried() const;

  // Ascending, because few threads never take much more than their share.
  std::vector<Candidate> candidates_;
  // Index of the candidate being tried; candidates_.size() once all were.
  size_t tried_ = 0;
  // Index of the fastest candidate, and the time until which the choice is valid.
  size_t best_ = 0;
  absl::Duration valid_until_ = -absl::InfiniteDuration();
  // True if the last result of Next was a try.
  bool counts_ = false;
};

// Samples this process about twice a second in its own thread and holds a PassiveWaiting while the
// cores are shared. Where the kernel has no accounting (Linux without CONFIG_SCHED_INFO), it always
// holds one.
class CoreSharingMonitor {
 public:
  // `threads`: threads of the kernels. Calls `notify` on the monitor's thread when sharing begins
  // and ends, but not for retries.
  CoreSharingMonitor(int threads, std::function<void(bool shared, double waited_fraction)> notify);
  ~CoreSharingMonitor();
  CoreSharingMonitor(const CoreSharingMonitor&) = delete;
  CoreSharingMonitor& operator=(const CoreSharingMonitor&) = delete;

  // For the training thread only: returns ThreadChoice::Next for work that starts now, and counts a
  // step made with it.
  int ThreadsForNextWork();
  void CountStep(absl::Duration duration) { choice_.CountStep(duration); }

 private:
  void Watch();

  const int threads_;
  const std::function<void(bool, double)> notify_;
  std::promise<void> ends_;
  std::atomic<bool> shared_ = false;
  ThreadChoice choice_;
  std::thread thread_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_
