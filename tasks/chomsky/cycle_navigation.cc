#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"

namespace lengthwise::tasks::chomsky {
namespace {

class CycleNavigationTask final : public UniformInputTask {
 public:
  explicit CycleNavigationTask(int32_t cycle_length)
      : UniformInputTask(3), cycle_length_(cycle_length) {}

  int32_t output_size() const override { return cycle_length_; }
  int64_t OutputLength(int64_t n) const override { return 1; }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    int32_t place = 0;
    for (const int32_t move : input) place = (place + cycle_length_ + move - 1) % cycle_length_;
    target[0] = place;
  }

 private:
  const int32_t cycle_length_;
};

}  // namespace

TaskEntry CycleNavigation() {
  return {
      {.name = "cycle_navigation",
       .title = "Cycle Navigation",
       .documentation =
           "Finds where a walk from position 0 of a cycle ends. Moves: 0 a step back, 1 stay, 2 a "
           "step forward. Ruoss et al. 2023, Table 1. Moves are independent and uniform.",
       .parameters = {{.name = "modulus",
                       .default_value = int64_t{5},
                       .documentation = "Number of positions on the cycle.",
                       .minimum = 2,
                       .maximum = 1000}}},
      TaskKind::kTransduction,
      "regular",
      0.2,
      [](const catalogue::Parameters& parameters) -> std::unique_ptr<Task> {
        return std::make_unique<CycleNavigationTask>(
            static_cast<int32_t>(parameters.Int("modulus")));
      },
      /*permutation_invariant=*/true};
}

}  // namespace lengthwise::tasks::chomsky
