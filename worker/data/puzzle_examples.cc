#include "worker/data/puzzle_examples.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"

namespace lengthwise::worker::data {

absl::Status PuzzleExamples::Prepare(uint64_t data_seed) {
  ASSIGN_OR_RETURN(tasks::PuzzleData data, task_->Data(data_seed));
  training_[data_seed] = std::move(data.training);
  validation_ = std::move(data.validation);
  by_condition_.assign(task_->conditions().size(), {});
  for (int64_t puzzle = 0; puzzle < validation_.size(); ++puzzle) {
    const int32_t condition = validation_.conditions[static_cast<size_t>(puzzle)];
    by_condition_[static_cast<size_t>(condition)].push_back(puzzle);
  }
  return absl::OkStatus();
}

void PuzzleExamples::Append(const tasks::PuzzleSet& set, int64_t puzzle, Batch& batch) const {
  const auto first = set.tokens.begin() + static_cast<std::ptrdiff_t>(puzzle * task_->cells());
  batch.tokens.insert(batch.tokens.end(), first,
                      first + static_cast<std::ptrdiff_t>(task_->cells()));
  batch.targets.push_back(set.classes[static_cast<size_t>(puzzle)]);
  batch.mask.push_back(1);
  ++batch.rows;
  batch.tokens_per_row = task_->cells();
  batch.outputs_per_row = 1;
}

void PuzzleExamples::AppendTraining(const SampleAddresses& addresses, int64_t n,
                                    Batch& batch) const {
  const tasks::PuzzleSet& set = training_.at(addresses.seed);
  for (const uint32_t row : addresses.rows) Append(set, row, batch);
}

int64_t PuzzleExamples::EvaluationSequences(int64_t n, int64_t asked) const {
  return std::min(asked, static_cast<int64_t>(by_condition_.at(static_cast<size_t>(n - 1)).size()));
}

void PuzzleExamples::AppendEvaluation(const EvaluationRows& rows, Batch& batch) const {
  const std::vector<int64_t>& puzzles = by_condition_.at(static_cast<size_t>(rows.n - 1));
  for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
    Append(validation_, puzzles.at(static_cast<size_t>(row)), batch);
  }
}

absl::StatusOr<GivenSequence> PuzzleExamples::Given(const v1::TokenSequence& input) const {
  ASSIGN_OR_RETURN(std::vector<int64_t> tokens, GivenTokens(input, task_->token_values()));
  if (static_cast<int64_t>(tokens.size()) != task_->cells()) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", tokens.size(),
                                                   " tokens; the task's puzzles have ",
                                                   task_->cells(), ", row by row"));
  }
  return GivenSequence{.length = 1, .tokens = std::move(tokens), .mask = {1}};
}

}  // namespace lengthwise::worker::data
