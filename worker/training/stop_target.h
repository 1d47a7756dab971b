// Decides whether training ends before its last step: Training.stop_after_seconds and
// Training.stop_at_accuracy. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_STOP_TARGET_H_
#define LENGTHWISE_WORKER_TRAINING_STOP_TARGET_H_

#include <cstdint>
#include <string>

#include "proto/event.pb.h"
#include "proto/specification.pb.h"

namespace lengthwise::worker::training {

// Returns the reason why training ends after `seconds`, as a sentence; empty if it continues.
std::string ReachedTime(const v1::Training& training, double seconds);

// Returns the reason why training ends with these accuracies of an evaluation during training, as a
// sentence; empty if it continues. Compares the mean over lengths above evaluation.seen_up_to, or
// over all lengths if none is above.
std::string ReachedAccuracy(const v1::Training& training, int32_t seen_up_to,
                            v1::LengthAccuracies accuracies);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_STOP_TARGET_H_
