// Supplies examples of token transduction. The network sees the n input tokens followed by m empty
// tokens with id input_size(). Its last m outputs are compared with the targets (randomized
// positional encodings, notes on the model wrapper). No LibTorch.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "tasks/task.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {
namespace {

class TransductionExamples final : public Examples {
 public:
  explicit TransductionExamples(std::unique_ptr<tasks::TransductionTask> task)
      : task_(std::move(task)) {}

  int64_t input_columns() const override { return task_->input_size() + 1; }
  int64_t output_columns() const override { return task_->output_size(); }
  int64_t InputTokens(int64_t n) const override { return task_->InputLength(n); }
  bool has_placeholders() const override { return true; }
  int64_t SequenceTokens(int64_t n) const override {
    return InputTokens(n) + task_->OutputLength(n);
  }

  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override {
    const auto inputs = static_cast<size_t>(InputTokens(n));
    const auto outputs = static_cast<size_t>(task_->OutputLength(n));
    const size_t count = addresses.rows.size();
    std::vector<int32_t> input_tokens(count * inputs);
    std::vector<int32_t> targets(count * outputs);
    const size_t old_outputs = batch.mask.size();
    batch.mask.resize(old_outputs + count * outputs);
    tasks::SampleRows(*task_, addresses.seed, addresses.purpose, addresses.step, n, addresses.rows,
                      {.inputs = absl::MakeSpan(input_tokens),
                       .targets = absl::MakeSpan(targets),
                       .mask = absl::MakeSpan(batch.mask).subspan(old_outputs)});

    batch.tokens.reserve(batch.tokens.size() + count * (inputs + outputs));
    for (size_t row = 0; row < count; ++row) {
      const auto begin = input_tokens.begin() + static_cast<std::ptrdiff_t>(row * inputs);
      batch.tokens.insert(batch.tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(inputs));
      batch.tokens.insert(batch.tokens.end(), outputs, task_->input_size());
    }
    batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
    batch.rows += static_cast<int64_t>(count);
    batch.tokens_per_row = static_cast<int64_t>(inputs + outputs);
    batch.outputs_per_row = static_cast<int64_t>(outputs);
  }

  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override {
    AppendTraining({.seed = rows.seed,
                    .purpose = random::Purpose::kEvaluationSamples,
                    .step = static_cast<uint64_t>(rows.n),
                    .rows = RowsFrom(rows.first, rows.count)},
                   rows.n, batch);
  }

  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override {
    ASSIGN_OR_RETURN(std::vector<int64_t> tokens, GivenTokens(input, task_->input_size()));
    // InputLength rounds lengths that the task lacks, so an accepted length is its own image.
    const auto count = static_cast<int64_t>(tokens.size());
    if (count < 1 || task_->InputLength(count) != count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has ", count, " tokens; no input of the task has that length",
          count >= 1 ? absl::StrCat("; a length that it has is ", task_->InputLength(count)) : ""));
    }
    GivenSequence given{.length = count, .tokens = std::move(tokens)};
    given.tokens.resize(static_cast<size_t>(SequenceTokens(count)), task_->input_size());
    given.mask.assign(static_cast<size_t>(task_->OutputLength(count)), 1);
    return given;
  }

 private:
  std::unique_ptr<tasks::TransductionTask> task_;
};

}  // namespace

std::unique_ptr<Examples> CreateTransductionExamples(std::unique_ptr<tasks::Task> task) {
  return std::make_unique<TransductionExamples>(std::unique_ptr<tasks::TransductionTask>(
      static_cast<tasks::TransductionTask*>(task.release())));
}

}  // namespace lengthwise::worker::data
