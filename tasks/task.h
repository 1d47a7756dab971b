// What is learned: sample generators. No LibTorch, no gRPC.
#ifndef LENGTHWISE_TASKS_TASK_H_
#define LENGTHWISE_TASKS_TASK_H_

#include <cstdint>

#include "absl/types/span.h"
#include "random/stream.h"

namespace lengthwise::tasks {

// What a batch of a task is made of. Each kind has its own interface below Task.
enum class TaskKind {
  kTransduction,  // a token sequence in, a token sequence out
  kRegression,    // a sequence of numbers in, a number for some of them out (tasks/regression.h)
  kPuzzle,        // a grid of tokens in, one class out (tasks/puzzles.h)
  kText,          // text that is continued (tasks/text_task.h)
};

// Immutable after construction; all methods may be called from any thread.
class Task {
 public:
  virtual ~Task() = default;
  virtual TaskKind kind() const = 0;
};

// A function from token sequences to token sequences whose output length is known from the input
// length.
//
// The model sees n input tokens, then m "empty" tokens of id input_size(); its last m outputs are
// the answer (notes: model wrapper; W = input_size() + 1).
class TransductionTask : public Task {
 public:
  TaskKind kind() const final { return TaskKind::kTransduction; }

  // Input tokens are {0, ..., input_size() - 1}, output tokens {0, ..., output_size() - 1}.
  virtual int32_t input_size() const = 0;
  virtual int32_t output_size() const = 0;

  // Length of the samples made when length `n` >= 1 is asked for; n unless a task has no samples of
  // some lengths.
  virtual int64_t InputLength(int64_t n) const { return n; }
  // Output length of an input of InputLength(n) tokens.
  virtual int64_t OutputLength(int64_t n) const = 0;

  // Draws one sample of length `n`: `input` has InputLength(n) places, `target` OutputLength(n).
  virtual void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
                      absl::Span<int32_t> target) const = 0;

  // Computes the target of an input that Sample could have made: what the task is.
  virtual void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const = 0;

  // Marks with 1 the places of `target` that count for accuracy, with 0 the others. The loss counts
  // all.
  virtual void Mask(absl::Span<const int32_t> target, absl::Span<uint8_t> mask) const;
};

// Caller-owned buffers of a batch, row-major: inputs [batch, InputLength(n)], targets and mask
// [batch, OutputLength(n)].
struct TransductionBatch {
  absl::Span<int32_t> inputs;
  absl::Span<int32_t> targets;
  absl::Span<uint8_t> mask;
};

// Fills the batch with `rows` of (seed, purpose, step), in that order; row r is a function of
// (seed, purpose, step, r) alone. Buffers hold exactly as many rows.
void SampleRows(const TransductionTask& task, uint64_t seed, random::Purpose purpose, uint64_t step,
                int64_t n, absl::Span<const uint32_t> rows, TransductionBatch batch);

// The same for rows first_row .. first_row + rows - 1, so that a batch may be made in parts.
void SampleBatch(const TransductionTask& task, uint64_t seed, random::Purpose purpose,
                 uint64_t step, int64_t n, uint32_t first_row, uint32_t rows,
                 TransductionBatch batch);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_TASK_H_
