// Tasks made of functions, and what many of them share: uniformly distributed tokens, and answers
// with a terminator.
#ifndef LENGTHWISE_TASKS_CHOMSKY_FUNCTION_TASK_H_
#define LENGTHWISE_TASKS_CHOMSKY_FUNCTION_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/types/span.h"
#include "random/stream.h"
#include "tasks/task.h"

namespace lengthwise::tasks::chomsky {

// Fills `tokens` with independent, uniform bits. 32 bits share one random word.
void DrawBits(random::Stream& stream, absl::Span<int32_t> tokens);

// Fills `tokens` with independent, uniform numbers of {0, ..., size - 1}.
void DrawTokens(random::Stream& stream, int32_t size, absl::Span<int32_t> tokens);

// The token after the last bit of an answer whose length does not follow from the input's.
inline constexpr int32_t kTerminator = 2;

// Writes the terminator after an answer that ends before `end`. Zeros fill the rest.
void Terminate(absl::Span<int32_t> target, absl::Span<int32_t>::iterator end);

// TransductionTask::Solve.
using Solver = void (*)(absl::Span<const int32_t> input, absl::Span<int32_t> target);

// The functions of a TransductionTask.
struct TaskFunctions {
  int32_t input_size = 0;
  int32_t output_size = 0;
  std::function<int64_t(int64_t n)> output_length;
  std::function<void(absl::Span<const int32_t> input, absl::Span<int32_t> target)> solve;
  // Draws an input; the sample's target is its solution. Empty: DrawTokens.
  std::function<void(random::Stream& stream, absl::Span<int32_t> input)> draw = nullptr;
  std::function<int64_t(int64_t n)> input_length = [](int64_t n) { return n; };
  // True if answers have a terminator. The zeros behind it do not count for accuracy but count for
  // the loss, as in the reference code.
  bool is_terminated = false;
};

// Two usual output lengths.
inline int64_t OneToken(int64_t /*n*/) { return 1; }
inline int64_t AsInput(int64_t n) { return n; }

std::unique_ptr<Task> FromFunctions(TaskFunctions functions);

}  // namespace lengthwise::tasks::chomsky

#endif  // LENGTHWISE_TASKS_CHOMSKY_FUNCTION_TASK_H_
