// Supplies examples of token transduction. The network sees the n input tokens followed by m empty
// tokens with id input_size(). Its last m outputs are compared with the targets (randomized
// positional encodings, notes on the model wrapper). No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_TRANSDUCTION_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_TRANSDUCTION_EXAMPLES_H_

#include <memory>

#include "tasks/task.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

class TransductionExamples : public Examples {
 public:
  explicit TransductionExamples(std::unique_ptr<tasks::TransductionTask> task)
      : task_(std::move(task)) {}

  int64_t input_columns() const override { return task_->input_size() + 1; }
  int64_t output_columns() const override { return task_->output_size(); }
  int64_t InputTokens(int64_t n) const override { return task_->InputLength(n); }
  int64_t OutputTokens(int64_t n) const override { return task_->OutputLength(n); }
  bool has_placeholders() const override { return true; }
  int64_t SequenceTokens(int64_t n) const override { return InputTokens(n) + OutputTokens(n); }
  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override;
  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override;
  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override;

 private:
  std::unique_ptr<tasks::TransductionTask> task_;
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_TRANSDUCTION_EXAMPLES_H_
