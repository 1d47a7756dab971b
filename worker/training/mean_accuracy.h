// One number for the accuracies at many lengths. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_MEAN_ACCURACY_H_
#define LENGTHWISE_WORKER_TRAINING_MEAN_ACCURACY_H_

#include <cstdint>

#include "proto/event.pb.h"

namespace lengthwise::worker::training {

// Mean of the accuracies at the lengths up to `seen_up_to`, and at those above it (the score of
// randomized positional encodings, section 4); -1 where there are no such lengths.
double SeenAccuracy(const v1::LengthAccuracies& accuracies, int32_t seen_up_to);
double UnseenAccuracy(const v1::LengthAccuracies& accuracies, int32_t seen_up_to);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_MEAN_ACCURACY_H_
