// Interfaces of sample generators. Does not depend on LibTorch or gRPC.
#ifndef LENGTHWISE_TASKS_TASK_H_
#define LENGTHWISE_TASKS_TASK_H_

#include <cstdint>

#include "absl/types/span.h"
#include "random/stream.h"

namespace lengthwise::tasks {

// The structure of a task's samples. Each kind has its own interface derived from Task.
enum class TaskKind {
  kTransduction,  // a token sequence in, a token sequence out
  kRegression,    // a sequence of numbers in, a number for some of them out (tasks/regression.h)
  kPuzzle,        // a grid of tokens in, one class out (tasks/puzzles.h)
  kText,          // text to be continued (tasks/text_task.h)
};

// Immutable after construction. Thread-safe.
class Task {
 public:
  virtual ~Task() = default;
  virtual TaskKind kind() const = 0;
};

// Maps token sequences to token sequences. The output length follows from the input length.
//
// The model reads n input tokens, then m "empty" tokens with the id input_size(). Its last m
// outputs are the answer, so its vocabulary has input_size() + 1 tokens.
class TransductionTask : public Task {
 public:
  TaskKind kind() const final { return TaskKind::kTransduction; }

  // Input tokens are {0, ..., input_size() - 1}, output tokens {0, ..., output_size() - 1}.
  virtual int32_t input_size() const = 0;
  virtual int32_t output_size() const = 0;

  // Length of the samples for a requested length `n` >= 1. Differs from n only for tasks without
  // samples of some lengths.
  virtual int64_t InputLength(int64_t n) const { return n; }
  // Output length of an input of InputLength(n) tokens.
  virtual int64_t OutputLength(int64_t n) const = 0;

  // Draws one sample of length `n`. `input` has InputLength(n) elements, `target` OutputLength(n).
  virtual void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
                      absl::Span<int32_t> target) const = 0;

  // Computes the target of an input that Sample could have drawn. Defines the task.
  virtual void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const = 0;

  // Sets 1 for the elements of `target` that count for accuracy, 0 for the others. The loss counts
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

// Fills the batch with `rows` of (seed, purpose, step), in that order. Row r is a function of
// (seed, purpose, step, r) only. Buffers hold exactly as many rows.
void SampleRows(const TransductionTask& task, uint64_t seed, random::Purpose purpose, uint64_t step,
                int64_t n, absl::Span<const uint32_t> rows, TransductionBatch batch);

}  // namespace lengthwise::tasks

#endif  // LENGTHWISE_TASKS_TASK_H_
