#include "worker/training/training_time.h"

namespace lengthwise::worker::training {

void TrainingTime::Resume(int64_t step, double seconds) {
  earlier_steps_ = step;
  earlier_seconds_ = seconds;
}

void TrainingTime::AddStep(double seconds) {
  ++steps_;
  seconds_ += seconds;
}

double TrainingTime::seconds() const {
  if (exact_) return earlier_seconds_ + seconds_;
  if (steps_ == 0) return 0;
  return seconds_ + static_cast<double>(earlier_steps_) * seconds_ / static_cast<double>(steps_);
}

}  // namespace lengthwise::worker::training
