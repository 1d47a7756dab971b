// Supplies examples of puzzles. The network sees the puzzle's tokens, and its output at the last
// token is compared with the puzzle's class, where the released code of relational reasoning reads
// out too. The axis is the number of a condition, from 1: each is evaluated on its validation
// puzzles. No LibTorch.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "tasks/puzzles.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {
namespace {

class PuzzleExamples final : public Examples {
 public:
  explicit PuzzleExamples(std::unique_ptr<tasks::PuzzleTask> task) : task_(std::move(task)) {}

  int64_t input_columns() const override { return task_->token_values(); }
  bool has_blank() const override { return true; }
  int64_t output_columns() const override { return task_->classes(); }
  int64_t InputTokens(int64_t n) const override { return task_->cells(); }
  // A class is an element, and an empty cell is none.
  std::string Symbol(int64_t token, bool is_target) const override {
    return Examples::Symbol(token + (is_target ? 1 : 0), is_target);
  }
  int64_t SequenceTokens(int64_t n) const override { return task_->cells(); }

  absl::Status Prepare(uint64_t data_seed) override {
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

  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override {
    const tasks::PuzzleSet& set = training_.at(addresses.seed);
    for (const uint32_t row : addresses.rows) Append(set, row, batch);
  }

  int64_t EvaluationSequences(int64_t n, int64_t asked) const override {
    return std::min(asked,
                    static_cast<int64_t>(by_condition_.at(static_cast<size_t>(n - 1)).size()));
  }

  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override {
    const std::vector<int64_t>& puzzles = by_condition_.at(static_cast<size_t>(rows.n - 1));
    for (int64_t row = rows.first; row < rows.first + rows.count; ++row) {
      Append(validation_, puzzles.at(static_cast<size_t>(row)), batch);
    }
  }

  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override {
    ASSIGN_OR_RETURN(std::vector<int64_t> tokens, GivenTokens(input, task_->token_values()));
    if (static_cast<int64_t>(tokens.size()) != task_->cells()) {
      return absl::InvalidArgumentError(absl::StrCat("it has ", tokens.size(),
                                                     " tokens; the task's puzzles have ",
                                                     task_->cells(), ", row by row"));
    }
    return GivenSequence{.length = 1, .tokens = std::move(tokens), .mask = {1}};
  }

 private:
  void Append(const tasks::PuzzleSet& set, int64_t puzzle, Batch& batch) const {
    const auto first = set.tokens.begin() + static_cast<std::ptrdiff_t>(puzzle * task_->cells());
    batch.tokens.insert(batch.tokens.end(), first,
                        first + static_cast<std::ptrdiff_t>(task_->cells()));
    batch.targets.push_back(set.classes[static_cast<size_t>(puzzle)]);
    batch.mask.push_back(1);
    ++batch.rows;
    batch.tokens_per_row = task_->cells();
    batch.outputs_per_row = 1;
  }

  std::unique_ptr<tasks::PuzzleTask> task_;
  // By data seed.
  std::map<uint64_t, tasks::PuzzleSet> training_;
  tasks::PuzzleSet validation_;
  // Numbers of the validation puzzles of each condition.
  std::vector<std::vector<int64_t>> by_condition_;
};

}  // namespace

std::unique_ptr<Examples> CreatePuzzleExamples(std::unique_ptr<tasks::Task> task) {
  return std::make_unique<PuzzleExamples>(
      std::unique_ptr<tasks::PuzzleTask>(static_cast<tasks::PuzzleTask*>(task.release())));
}

}  // namespace lengthwise::worker::data
