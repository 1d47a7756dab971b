#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"

namespace lengthwise::tasks::chomsky {
namespace {

constexpr int32_t kMissing = 2;
// The last token of an input of odd length.
constexpr int32_t kPadding = 3;

class MissingDuplicateStringTask final : public TransductionTask {
 public:
  int32_t input_size() const override { return 4; }
  int32_t output_size() const override { return 2; }
  int64_t OutputLength(int64_t n) const override { return 1; }

  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    if (n == 1) {  // No room for two copies; the reference code uses this constant.
      input[0] = target[0] = 1;
      return;
    }
    const size_t half = input.size() / 2;
    DrawBits(stream, input.first(half));
    std::copy_n(input.begin(), half, input.begin() + half);
    if (input.size() % 2 == 1) input.back() = kPadding;
    int32_t& struck = input[stream.Below(static_cast<uint32_t>(2 * half))];
    target[0] = struck;
    struck = kMissing;
  }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
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
};

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
      CreateWithoutParameters<MissingDuplicateStringTask>};
}

}  // namespace lengthwise::tasks::chomsky
