#include <algorithm>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"
#include "tasks/chomsky/vocabulary.h"

namespace lengthwise::tasks::chomsky {
namespace {

class ReverseStringTask final : public UniformInputTask {
 public:
  explicit ReverseStringTask(int32_t vocabulary) : UniformInputTask(vocabulary) {}

  int32_t output_size() const override { return input_size(); }
  int64_t OutputLength(int64_t n) const override { return n; }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    std::reverse_copy(input.begin(), input.end(), target.begin());
  }
};

}  // namespace

const TaskEntry& ReverseString() {
  static const auto& entry =
      *new TaskEntry{{.name = "reverse_string",
                      .title = "Reverse String",
                      .documentation = "Reverses the input. Ruoss et al. 2023, Table 1. Input "
                                       "tokens are independent and uniform.",
                      .parameters = {VocabularyParameter(2)}},
                     TaskKind::kTransduction,
                     "deterministic context-free",
                     0.5,
                     /*permutation_invariant=*/false,
                     [](const catalogue::Parameters& parameters) -> std::unique_ptr<Task> {
                       return std::make_unique<ReverseStringTask>(Vocabulary(parameters));
                     }};
  return entry;
}

}  // namespace lengthwise::tasks::chomsky
