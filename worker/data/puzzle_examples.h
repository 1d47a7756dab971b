// Supplies examples of puzzles. The network sees the puzzle's tokens, and its output at the last
// token is compared with the puzzle's class, where the released code of relational reasoning reads
// out too. The axis is the number of a condition, from 1: each is evaluated on its validation
// puzzles. No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_PUZZLE_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_PUZZLE_EXAMPLES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tasks/puzzles.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

class PuzzleExamples : public Examples {
 public:
  explicit PuzzleExamples(std::unique_ptr<tasks::PuzzleTask> task) : task_(std::move(task)) {}

  int64_t input_columns() const override { return task_->token_values(); }
  bool has_blank() const override { return true; }
  int64_t output_columns() const override { return task_->classes(); }
  int64_t InputTokens(int64_t n) const override { return task_->cells(); }
  int64_t OutputTokens(int64_t n) const override { return 1; }
  // A class is an element, and an empty cell is none.
  std::string Symbol(int64_t token, bool is_target) const override {
    return Examples::Symbol(token + (is_target ? 1 : 0), is_target);
  }
  int64_t SequenceTokens(int64_t n) const override { return task_->cells(); }
  absl::Status Prepare(uint64_t data_seed) override;
  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override;
  int64_t EvaluationSequences(int64_t n, int64_t asked) const override;
  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override;
  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override;

 private:
  void Append(const tasks::PuzzleSet& set, int64_t puzzle, Batch& batch) const;

  std::unique_ptr<tasks::PuzzleTask> task_;
  // By data seed.
  std::map<uint64_t, tasks::PuzzleSet> training_;
  tasks::PuzzleSet validation_;
  // Numbers of the validation puzzles of each condition.
  std::vector<std::vector<int64_t>> by_condition_;
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_PUZZLE_EXAMPLES_H_
