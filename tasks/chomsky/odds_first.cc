#include <cstddef>
#include <cstdint>
#include <memory>

#include "tasks/all_tasks.h"
#include "tasks/chomsky/uniform_tokens.h"
#include "tasks/chomsky/vocabulary.h"

namespace lengthwise::tasks::chomsky {
namespace {

class OddsFirstTask final : public UniformInputTask {
 public:
  explicit OddsFirstTask(int32_t vocabulary) : UniformInputTask(vocabulary) {}

  int32_t output_size() const override { return input_size(); }
  int64_t OutputLength(int64_t n) const override { return n; }

  void Solve(absl::Span<const int32_t> input, absl::Span<int32_t> target) const override {
    auto place = target.begin();
    for (size_t i = 1; i < input.size(); i += 2) *place++ = input[i];
    for (size_t i = 0; i < input.size(); i += 2) *place++ = input[i];
  }
};

}  // namespace

const TaskEntry& OddsFirst() {
  static const auto& entry = *new TaskEntry{
      {.name = "odds_first",
       .title = "Odds First",
       .documentation = "Writes the tokens at odd positions, then those at even positions, counted "
                        "from 0. Ruoss et al. 2023, Table 1 (follows the reference code; its "
                        "description counts from 1). Input tokens are independent and uniform.",
       .parameters = {VocabularyParameter(2)}},
      TaskKind::kTransduction,
      "context-sensitive",
      0.5,
      /*permutation_invariant=*/false,
      [](const catalogue::Parameters& parameters) -> std::unique_ptr<Task> {
        return std::make_unique<OddsFirstTask>(Vocabulary(parameters));
      }};
  return entry;
}

}  // namespace lengthwise::tasks::chomsky
