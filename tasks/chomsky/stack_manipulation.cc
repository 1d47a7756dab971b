#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/function_task.h"

namespace lengthwise::tasks::chomsky {
namespace {

// Input tokens after the bits of the initial stack.
constexpr int32_t kPop = 2;
constexpr int32_t kPushZero = 3;
constexpr int32_t kInputSize = 5;

void DrawStack(random::Stream& stream, absl::Span<int32_t> input) {
  const auto n = static_cast<int64_t>(input.size());
  const auto height = static_cast<size_t>(n == 1 ? 1 : stream.Between(1, n - 1));
  DrawBits(stream, input.first(height));
  for (int32_t& action : input.subspan(height)) {
    action = kPop + static_cast<int32_t>(stream.Below(kInputSize - kPop));
  }
}

void SolveStack(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  // The target has an element for every token of the input, so it can hold the stack, bottom first.
  size_t height = 0;
  for (const int32_t token : input) {
    if (token == kPop) {
      if (height > 0) --height;
    } else {
      target[height++] = token < kPop ? token : token - kPushZero;
    }
  }
  const auto end = target.begin() + static_cast<ptrdiff_t>(height);
  std::reverse(target.begin(), end);
  Terminate(target, end);
}

}  // namespace

TaskEntry StackManipulation() {
  return {
      {.name = "stack_manipulation",
       .title = "Stack Manipulation",
       .documentation =
           "Applies actions to a stack. The input is a stack of bits, bottom first, then actions: "
           "2 pop, 3 push 0, 4 push 1. Popping an empty stack does nothing. The target is the "
           "resulting stack, top first, the terminator 2, then zeros that do not count for "
           "accuracy. Ruoss et al. 2023, Table 1, where guessing scores 50 %: one of two bits."},
      TaskKind::kTransduction,
      "deterministic context-free",
      0.5,
      [](const catalogue::Parameters&) {
        return FromFunctions({.input_size = kInputSize,
                              .output_size = 3,
                              .output_length = [](int64_t n) { return n + 1; },
                              .solve = SolveStack,
                              .draw = DrawStack,
                              .is_terminated = true});
      }};
}

}  // namespace lengthwise::tasks::chomsky
