// How long a trial's training took, over all its attempts. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_TRAINING_TIME_H_
#define LENGTHWISE_WORKER_TRAINING_TRAINING_TIME_H_

#include <cstdint>

namespace lengthwise::worker::training {

// An attempt knows the seconds of its own steps. Those of the steps before its checkpoint are in
// the checkpoint only where a clock may stop the trial (trial_checkpoint.h): otherwise they are
// taken to have been as fast as this attempt's.
class TrainingTime {
 public:
  // `exact` where checkpoints carry seconds.
  explicit TrainingTime(bool exact) : exact_(exact) {}

  // The attempt begins behind a checkpoint of `step` whose header says `seconds`.
  void Resume(int64_t step, double seconds);
  // A step of this attempt took `seconds`.
  void AddStep(double seconds);

  // Of all steps so far; 0 where that cannot be told because this attempt made none.
  double seconds() const;
  // What the checkpoint of the next attempt is to say.
  double seconds_for_checkpoint() const { return exact_ ? seconds() : 0; }

 private:
  bool exact_;
  int64_t earlier_steps_ = 0;
  double earlier_seconds_ = 0;
  int64_t steps_ = 0;
  double seconds_ = 0;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_TRAINING_TIME_H_
