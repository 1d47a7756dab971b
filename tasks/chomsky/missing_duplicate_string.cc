#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/function_task.h"

namespace lengthwise::tasks::chomsky {
namespace {

constexpr int32_t kMissing = 2;
// The last token of an input of odd length.
constexpr int32_t kPadding = 3;

void DrawWithDuplicate(random::Stream& stream, absl::Span<int32_t> input) {
  if (input.size() == 1) {  // No room for two copies; the reference code uses this constant.
    input[0] = 1;
    return;
  }
  const size_t half = input.size() / 2;
  DrawBits(stream, input.first(half));
  std::copy_n(input.begin(), half, input.begin() + half);
  if (input.size() % 2 == 1) input.back() = kPadding;
  input[stream.Below(static_cast<uint32_t>(2 * half))] = kMissing;
}

void FindDuplicate(absl::Span<const int32_t> input, absl::Span<int32_t> target) {
  const size_t half = input.size() / 2;
  const auto missing =
      static_cast<size_t>(std::find(input.begin(), input.end(), kMissing) - input.begin());
  if (missing < half) {
    target[0] = input[missing + half];
  } else if (missing < 2 * half) {
    target[0] = input[missing - half];
  } else {
    target[0] = 1;  // A single token; nothing is missing.
  }
}

}  // namespace

TaskEntry MissingDuplicateString() {
  return {
      {.name = "missing_duplicate_string",
       .title = "Missing Duplicate",
       .documentation = "Finds the bit that was replaced by 2 in a bit string written twice. "
                        "Inputs of odd length end with a 3. Ruoss et al. 2023, Table 1. String and "
                        "position are uniform; at length 1 input and target are always 1. The "
                        "parity of the ones determines the bit, so order does not matter, although "
                        "the paper does not list the task as permutation-invariant."},
      TaskKind::kTransduction,
      "context-sensitive",
      0.5,
      [](const catalogue::Parameters&) {
        return FromFunctions({.input_size = 4,
                              .output_size = 2,
                              .output_length = OneToken,
                              .solve = FindDuplicate,
                              .draw = DrawWithDuplicate});
      }};
}

}  // namespace lengthwise::tasks::chomsky
