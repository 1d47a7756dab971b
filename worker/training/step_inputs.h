// Lays out the host's inputs of a training step in one block of memory, so that one copy brings
// them to the device and a recorded step finds them at fixed addresses.
#ifndef LENGTHWISE_WORKER_TRAINING_STEP_INPUTS_H_
#define LENGTHWISE_WORKER_TRAINING_STEP_INPUTS_H_

#include <compare>
#include <cstdint>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "worker/data/batch_tensors.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::training {

// The sizes on which the block's layout depends, and all that a step does.
struct StepShape {
  int64_t members = 0;
  int64_t rows = 0;  // of all members
  int64_t tokens_per_row = 0;
  int64_t outputs_per_row = 0;
  // Position draws of a member (S).
  int64_t draws = 0;
  // Number of the optimizer's values (models::Optimizer::StepNumbers).
  int64_t step_numbers = 0;
  // Which parts of a Batch exist.
  bool tokens = false, numbers = false, classes = false;

  friend auto operator<=>(const StepShape&, const StepShape&) = default;
};

// `samples` are those of all members, one behind the other; empty for text, of which the block has
// the step's numbers alone.
StepShape ShapeOf(const data::Batch& samples, int64_t members, int64_t draws, int64_t step_numbers);

// Sizes in bytes: the whole block, and its first part, which is everything except the step's
// numbers.
int64_t BlockBytes(const StepShape& shape);
int64_t SampleBytes(const StepShape& shape);

// Fill the first part, with positions [members, S, T], and the rest. `block` has BlockBytes and
// begins at a multiple of 8.
void WriteSamples(const StepShape& shape, const data::Batch& samples,
                  absl::Span<const int64_t> positions, uint8_t* block);
void WriteStepNumbers(const StepShape& shape, absl::Span<const double> numbers, uint8_t* block);

// Views into a block, on whichever device it is; undefined where it has no such numbers. Its real
// numbers, which are double, are converted to `dtype`.
struct StepTensors {
  data::BatchTensors batch;
  at::Tensor positions;     // int64 [members, S, T]
  at::Tensor step_numbers;  // double [step_numbers]
};
StepTensors TensorsOf(const StepShape& shape, const at::Tensor& block, at::ScalarType dtype);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_STEP_INPUTS_H_
