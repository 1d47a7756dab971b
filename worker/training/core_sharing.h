// Finds out while a worker trains whether other programs use its cores, and makes its threads wait
// so that sharing costs a share; how many of them train then is measured. No registry of workers:
// the kernel's account of this process also knows of other users, containers and builds.
#ifndef LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_
#define LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "platform/process_usage.h"
#include "worker/training/passive_waiting.h"

namespace lengthwise::worker::training {

// Decides from samples of the threads' scheduling times. The cores count as shared when a busy
// thread waited for a core for kSharedFraction of the time or more: all threads of a loop then wait
// for that one. While threads wait passively, their waiting says nothing about spinning. So the
// decision is tried again after kFirstRetry, then after twice as long each time, up to kLastRetry.
// Not thread-safe.
class CoreSharing {
 public:
  // One busy loop beside spinning threads makes it 0.45 or more. Programs that take a tenth of all
  // cores leave it below 0.2; spinning is still faster then.
  static constexpr double kSharedFraction = 0.25;
  static constexpr absl::Duration kFirstRetry = absl::Seconds(1);
  static constexpr absl::Duration kLastRetry = absl::Seconds(30);
  // After this long without sharing, the next retry is after kFirstRetry again.
  static constexpr absl::Duration kSettled = absl::Seconds(2);

  // By thread.
  using Times = std::map<int, platform::SchedulingTimes>;

  // Takes a sample and its time since any fixed moment; returns shared(). Call it about
  // twice a second.
  bool Update(absl::Duration time, const Times& times);

  bool shared() const { return shared_; }
  // The fraction of the time that the thread which waited most waited for a core, between the last
  // two samples. 0 without busy threads.
  double waited_fraction() const { return waited_fraction_; }

 private:
  bool shared_ = false;
  double waited_fraction_ = 0;
  absl::Duration last_time_;
  Times last_;
  // The last change of shared_.
  absl::Duration changed_;
  absl::Duration retry_ = kFirstRetry;
};

// Chooses how many threads train while the cores are shared, by trying all of them, half and one.
// More threads get a larger part of a machine with many programs; but each parallel loop waits for
// the thread that gets a core last, so beside one busy program a core a single thread is fastest.
// Results do not depend on the number of threads. Not thread-safe.
class ThreadChoice {
 public:
  // One try: at least this long and this many steps, since lengths of steps are drawn; or as long
  // as twice as many of the fastest number's steps.
  static constexpr absl::Duration kTry = absl::Seconds(1);
  static constexpr int64_t kTrySteps = 20;
  // A choice is repeated after this long, because other programs come and go, but not before tries
  // are down to a tenth of the time.
  static constexpr absl::Duration kValid = absl::Seconds(60);

  // `threads`: those of cores of one's own, at least 1.
  explicit ThreadChoice(int threads);

  // The number of threads for the next piece of work, at `time` since any fixed moment.
  int Next(absl::Duration time, bool shared);
  // Counts a training step that took `duration` with the threads that Next said last.
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

  // From few to many: the first is never far from its share.
  std::vector<Candidate> candidates_;
  // Being tried; the number of candidates when all were.
  size_t tried_ = 0;
  // The index of the fastest that was tried, and until when that counts.
  size_t best_ = 0;
  absl::Duration valid_until_ = -absl::InfiniteDuration();
  // The last result of Next was a try.
  bool counts_ = false;
};

// Samples this process about twice a second in a thread of its own, and holds a PassiveWaiting
// while its cores are shared. Where the kernel has no account (Linux without CONFIG_SCHED_INFO),
// it always does.
class CoreSharingMonitor {
 public:
  // `threads`: threads of the kernels. `notify` is called on the monitor's thread when sharing
  // begins, and when it is over, not for retries.
  CoreSharingMonitor(int threads, std::function<void(bool shared, double waited_fraction)> notify);
  ~CoreSharingMonitor();
  CoreSharingMonitor(const CoreSharingMonitor&) = delete;
  CoreSharingMonitor& operator=(const CoreSharingMonitor&) = delete;

  // For the one thread that trains: ThreadChoice's, for the next piece of work now, and the count
  // of a step made with it.
  int ThreadsForNextWork();
  void CountStep(absl::Duration duration) { choice_.CountStep(duration); }

 private:
  void Watch();
  // Returns false when the monitor ends.
  bool Sleep(absl::Duration time);

  const int threads_;
  const std::function<void(bool, double)> notify_;
  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> shared_ = false;
  ThreadChoice choice_;
  std::thread thread_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_
