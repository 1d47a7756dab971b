// Makes OpenMP threads sleep instead of spin between parallel loops.
#ifndef LENGTHWISE_WORKER_TRAINING_PASSIVE_WAITING_H_
#define LENGTHWISE_WORKER_TRAINING_PASSIVE_WAITING_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"

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

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  // First thread of the team, which ends with it.
  std::thread holder_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PASSIVE_WAITING_H_
