// The input length of each training step. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_LENGTH_SCHEDULE_H_
#define LENGTHWISE_WORKER_TRAINING_LENGTH_SCHEDULE_H_

#include <cstdint>

#include "proto/specification.pb.h"

namespace lengthwise::worker::training {

// The length asked for at step `step` (from 1): uniform in training.lengths, a function of
// training.schedule_seed and the step alone, so that the trials of a pack share it and a resumed
// trial sees it again (randomized positional encodings, appendix B: one length per batch).
int64_t LengthOfStep(const v1::Training& training, int64_t step);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_LENGTH_SCHEDULE_H_
