#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/binary_number.h"

namespace lengthwise::tasks::chomsky {
namespace {

class ComputeSqrtTask final : public TransductionTask {
 public:
  int32_t input_size() const override { return 2; }
  int32_t output_size() const override { return 2; }
  int64_t OutputLength(int64_t n) const override { return (n + 1) / 2; }

  void Sample(int64_t n, random::Stream& stream, absl::Span<int32_t> input,
              absl::Span<int32_t> target) const override {
    DrawPositive(stream, input);
    Solve(input, target);
  }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    const Limbs root = SquareRoot(FromHighFirst(input));
    for (size_t i = 0; i < target.size(); ++i) target[i] = Bit(root, target.size() - 1 - i);
  }
};

}  // namespace

TaskEntry ComputeSqrt() {
  return {
      {.name = "compute_sqrt",
       .title = "Compute Sqrt",
       .documentation = "Computes the square root of a binary number, rounded down. Both have the "
                        "highest bit first; leading zeros extend the root to half the input's "
                        "length, rounded up. Ruoss et al. 2023, Table 1. The number is uniform "
                        "from 1 to 2^n - 1; arithmetic is exact at any length."},
      TaskKind::kTransduction,
      "context-sensitive",
      0.5,
      CreateWithoutParameters<ComputeSqrtTask>};
}

}  // namespace lengthwise::tasks::chomsky
