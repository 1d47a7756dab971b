#ifndef LENGTHWISE_WORKER_TRAINING_TESTING_TRAIN_STEP_H_
#define LENGTHWISE_WORKER_TRAINING_TESTING_TRAIN_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/training/pack_model.h"

namespace lengthwise::worker::training {

// Starts and finishes a step. No other step may be unfinished.
inline std::vector<StepMeasurement> TrainStep(PackModel& model, int64_t step,
                                              absl::Span<const int64_t> members,
                                              absl::Span<const double> learning_rates) {
  model.StartStep(step, members, learning_rates);
  return model.FinishStep();
}

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_TESTING_TRAIN_STEP_H_
