// Inputs that a user gives instead of a sampler. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_GIVEN_INPUT_H_
#define LENGTHWISE_WORKER_TRAINING_GIVEN_INPUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tasks/task.h"

namespace lengthwise::worker::training {

// The length n whose inputs have as many tokens as `tokens`, which tells how many outputs follow
// them; INVALID_ARGUMENT, naming what is accepted, where no n has, or where a token is not the
// task's. Tokens that no sample has in this order are accepted: what a model makes of them may be
// just what is asked.
absl::StatusOr<int64_t> LengthOfInput(const tasks::TransductionTask& task,
                                      absl::Span<const int32_t> tokens);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_GIVEN_INPUT_H_
