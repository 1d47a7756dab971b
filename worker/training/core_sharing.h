// Finds out while a worker trains whether other programs use its cores, and makes its threads wait
// so that sharing costs a share. No registry of workers: the kernel's account of this process also
// knows of other users, containers and builds.
#ifndef LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_
#define LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_

#include <functional>
#include <map>
#include <thread>

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

 private:
  void Watch();
  // Returns false when the monitor ends.
  bool Sleep(absl::Duration time);

  const int threads_;
  const std::function<void(bool, double)> notify_;
  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_CORE_SHARING_H_
