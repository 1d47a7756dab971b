// Measures training time and speed, estimates the remaining time, and decides whether training ends
// before its last step. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_PACE_H_
#define LENGTHWISE_WORKER_TRAINING_PACE_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "proto/event.pb.h"
#include "proto/specification.pb.h"
#include "worker/training/blueprint.h"

namespace lengthwise::worker::training {

// Returns the work of a forward pass over one sequence, in units of 4 d_model multiplications per
// block. A token takes 12 d_model^2 for products with weights and 2 T d_model for attention, so T
// tokens take T (6 d_model + T).
double SequenceWork(int64_t tokens, int64_t d_model);

// Returns the work of a trial's full evaluation including the repetitions with embedding noise; of
// the evaluation at length `n` without noise; and of one training step (forward and backward pass),
// averaged over lengths. Both evaluations include the repetition for the accuracy by rounding. The
// backward pass counts as two forward passes.
double EvaluationWork(const Blueprint& blueprint);
double EvaluationWork(const Blueprint& blueprint, int64_t n);
double MeanStepWork(const Blueprint& blueprint);

// A trial's remaining training after `step` steps and `seconds`, at a rate above 0. Training ends
// after its last step or after training.stop_after_seconds.
struct TrainingLeft {
  int64_t steps = 0;
  double seconds = 0;
};
TrainingLeft EstimateTrainingLeft(const v1::Training& training, int64_t step, double seconds,
                                  double steps_per_second);

// Returns the reason why training ends after `seconds`, as a sentence; empty if it continues.
std::string ReachedTime(const v1::Training& training, double seconds);

// Returns the reason why training ends with these accuracies of an evaluation during training, as a
// sentence; empty if it continues. Compares the mean over the lengths of evaluation.select.
std::string ReachedAccuracy(const v1::Training& training, const v1::Evaluation& evaluation,
                            const v1::LengthAccuracies& accuracies);

// Measures steps per second. The newest interval weighs as much as all earlier ones together. Not
// thread-safe.
class StepRate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit StepRate(TimePoint now) : last_time_(now) {}

  // Counts a step that ended at `now`. Returns true if a report is due: about once a second.
  bool CountStep(TimePoint now);
  // 0 before the first report.
  double steps_per_second() const { return steps_per_second_.value_or(0); }

 private:
  TimePoint last_time_;
  int64_t steps_ = 0;
  std::optional<double> steps_per_second_;
};

// Accumulates a trial's training time over all its attempts.
//
// An attempt measures its own steps. The seconds of earlier steps are in the checkpoint only for
// trials with a time limit (trial_checkpoint.h). Otherwise earlier steps are assumed to have been
// as fast as this attempt's.
class TrainingTime {
 public:
  // `exact`: true if checkpoints carry seconds.
  explicit TrainingTime(bool exact) : exact_(exact) {}

  // The attempt resumes from a checkpoint at `step` whose header has `seconds`.
  void Resume(int64_t step, double seconds);
  // A step of this attempt took `seconds`.
  void AddStep(double seconds);

  // Duration of all steps so far. 0 if unknown, because this attempt made no step.
  double seconds() const;
  // The seconds to store in a checkpoint for the next attempt.
  double seconds_for_checkpoint() const { return exact_ ? seconds() : 0; }

 private:
  bool exact_;
  int64_t earlier_steps_ = 0;
  double earlier_seconds_ = 0;
  int64_t steps_ = 0;
  double seconds_ = 0;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACE_H_
