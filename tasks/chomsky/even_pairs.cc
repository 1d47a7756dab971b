#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"

namespace lengthwise::tasks::chomsky {
namespace {

class EvenPairsTask final : public UniformInputTask {
 public:
  EvenPairsTask() : UniformInputTask(2) {}

  int32_t output_size() const override { return 2; }
  int64_t OutputLength(int64_t n) const override { return 1; }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    int32_t unequal = 0;
    for (size_t i = 1; i < input.size(); ++i) unequal += input[i - 1] != input[i];
    target[0] = unequal % 2;
  }
};

}  // namespace

TaskEntry EvenPairs() {
  return {
      {.name = "even_pairs",
       .title = "Even Pairs",
       .documentation = "Counts unequal neighbours (01 or 10): 0 if their number is even, 1 if it "
                        "is odd. Equivalently, 1 if the first bit differs from the last. Ruoss et "
                        "al. 2023, Table 1. Input bits are independent and uniform."},
      TaskKind::kTransduction,
      "regular",
      0.5,
      CreateWithoutParameters<EvenPairsTask>};
}

}  // namespace lengthwise::tasks::chomsky
