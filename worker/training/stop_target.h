// The targets that end a trial's training before its last step: Training.stop_after_seconds and
// Training.stop_at_accuracy. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_STOP_TARGET_H_
#define LENGTHWISE_WORKER_TRAINING_STOP_TARGET_H_

#include <cstdint>
#include <string>

#include "proto/event.pb.h"
#include "proto/specification.pb.h"

namespace lengthwise::worker::training {

// Why training ends after it has taken `seconds`, as a sentence; empty where it goes on.
std::string ReachedTime(const v1::Training& training, double seconds);

// Why training ends with these accuracies of an evaluation during training, as a sentence; empty
// where it goes on. Their mean is over the lengths above evaluation.seen_up_to, or over all where
// none is above.
std::string ReachedAccuracy(const v1::Training& training, int32_t seen_up_to,
                            v1::LengthAccuracies accuracies);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_STOP_TARGET_H_
