// Lays out a training step's host inputs in one block of memory, so that a single copy moves them
// to the device and a recorded step finds them at fixed addresses.
#ifndef LENGTHWISE_WORKER_TRAINING_STEP_INPUTS_H_
#define LENGTHWISE_WORKER_TRAINING_STEP_INPUTS_H_

#include <compare>
#include <cstdint>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "worker/data/batch_tensors.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::training {

// Sizes that determine the block's layout and the operations of a step.
struct StepShape {
  int64_t members = 0;
  int64_t rows = 0;  // over all members
  int64_t tokens_per_row = 0;
  int64_t outputs_per_row = 0;
  // Position draws per member (S).
  int64_t draws = 0;
  // True: positions are those of each row instead.
  bool own_positions = false;
  // Number of values from models::Optimizer::StepNumbers.
  int64_t step_numbers = 0;
  // Parts of a Batch that exist.
  bool tokens = false, numbers = false, classes = false;

  friend auto operator<=>(const StepShape&, const StepShape&) = default;
};

// `samples` holds all members' samples in order. It is empty for text, whose block has only the
// step's numbers.
StepShape ShapeOf(const data::Batch& samples, int64_t members, int64_t draws, int64_t step_numbers,
                  bool own_positions = false);

// Sizes in bytes of the whole block, and of its first part, which is everything except the step's
// numbers.
int64_t BlockBytes(const StepShape& shape);
int64_t SampleBytes(const StepShape& shape);

// Fill the first part, including positions [members, S, T] or [rows, T], and the rest. `block` has
// BlockBytes bytes and is aligned to 8 bytes.
void WriteSamples(const StepShape& shape, const data::Batch& samples,
                  absl::Span<const double> positions, uint8_t* block);
void WriteStepNumbers(const StepShape& shape, absl::Span<const double> numbers, uint8_t* block);

// Views into a block on any device; undefined for arrays that the block lacks. Real numbers, stored
// as double, are converted to `dtype`.
struct StepTensors {
  data::BatchTensors batch;
  at::Tensor positions;     // double [members, S, T], or own ones [members, 1, B, T]
  at::Tensor step_numbers;  // double [step_numbers]
};
StepTensors TensorsOf(const StepShape& shape, const at::Tensor& block, at::ScalarType dtype);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_STEP_INPUTS_H_
