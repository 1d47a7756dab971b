#include <algorithm>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"
#include "tasks/chomsky/vocabulary.h"

namespace lengthwise::tasks::chomsky {
namespace {

class DuplicateStringTask final : public UniformInputTask {
 public:
  explicit DuplicateStringTask(int32_t vocabulary) : UniformInputTask(vocabulary) {}

  int32_t output_size() const override { return input_size(); }
  int64_t OutputLength(int64_t n) const override { return 2 * n; }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    const auto middle = std::copy(input.begin(), input.end(), target.begin());
    std::copy(input.begin(), input.end(), middle);
  }
};

}  // namespace

const TaskEntry& DuplicateString() {
  static const auto& entry =
      *new TaskEntry{{.name = "duplicate_string",
                      .title = "Duplicate String",
                      .documentation = "Writes the input twice. Ruoss et al. 2023, Table 1. Input "
                                       "tokens are independent and uniform.",
                      .parameters = {VocabularyParameter(2)}},
                     TaskKind::kTransduction,
                     "context-sensitive",
                     0.5,
                     /*permutation_invariant=*/false,
                     [](const catalogue::Parameters& parameters) -> std::unique_ptr<Task> {
                       return std::make_unique<DuplicateStringTask>(Vocabulary(parameters));
                     }};
  return entry;
}

}  // namespace lengthwise::tasks::chomsky
