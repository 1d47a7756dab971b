#include <cstdint>
#include <memory>
#include <numeric>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"

namespace lengthwise::tasks::chomsky {
namespace {

class ParityCheckTask final : public UniformInputTask {
 public:
  ParityCheckTask() : UniformInputTask(2) {}

  int32_t output_size() const override { return 2; }
  int64_t OutputLength(int64_t n) const override { return 1; }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    target[0] = std::accumulate(input.begin(), input.end(), 0) % 2;
  }
};

}  // namespace

TaskEntry ParityCheck() {
  return {{.name = "parity_check",
           .title = "Parity Check",
           .documentation = "Counts the ones modulo 2. Ruoss et al. 2023, Table 1. "
                            "Input bits are independent and uniform."},
          TaskKind::kTransduction,
          "regular",
          0.5,
          CreateWithoutParameters<ParityCheckTask>,
          /*permutation_invariant=*/true};
}

}  // namespace lengthwise::tasks::chomsky
