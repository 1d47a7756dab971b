// Independent, uniformly distributed tokens: the inputs of most tasks.
#ifndef LENGTHWISE_TASKS_CHOMSKY_UNIFORM_TOKENS_H_
#define LENGTHWISE_TASKS_CHOMSKY_UNIFORM_TOKENS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::tasks::chomsky {

// Fills `tokens` with bits. 32 bits share one random word.
void DrawBits(random::Stream& stream, absl::Span<int32_t> tokens);

// Fills `tokens` with numbers of {0, ..., size - 1}.
void DrawTokens(random::Stream& stream, int32_t size, absl::Span<int32_t> tokens);

// Base class for tasks with independent uniform input tokens. Subclasses implement Solve.
class UniformInputTask : public TransductionTask {
 public:
  int32_t input_size() const final { return input_size_; }
  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const final;

 protected:
  explicit UniformInputTask(int32_t input_size) : input_size_(input_size) {}

 private:
  const int32_t input_size_;
};

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_UNIFORM_TOKENS_H_
