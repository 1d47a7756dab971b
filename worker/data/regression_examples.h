// Supplies examples of regression. The network sees rows of numbers, some with tokens, and its
// outputs at the rows in the mask are compared with numbers. The axis is the scale c of the
// numbers, 1 in training (positional attention, section 6); training.lengths is the range of how
// many numbers an example has. No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_REGRESSION_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_REGRESSION_EXAMPLES_H_

#include <memory>

#include "proto/specification.pb.h"
#include "tasks/regression.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

// A scale's evaluation sequences cover all of training.lengths in equal shares, longest first; in
// order, each is one shorter than the one before, from the longest again after the shortest. If the
// task has features that training never shows (tasks::Domain::unseen), evaluations use them at
// every scale, and validation only above scale 1.
class RegressionExamples : public Examples {
 public:
  RegressionExamples(std::unique_ptr<tasks::RegressionTask> task, const v1::LengthRange& lengths)
      : task_(std::move(task)), lengths_(lengths) {}

  Targets targets() const override { return Targets::kNumbers; }
  double rounding_unit() const override { return task_->rounding_unit(); }
  bool has_numbers() const override { return true; }
  int64_t input_columns() const override { return task_->vocabulary(); }
  int64_t output_columns() const override { return 1; }
  int64_t InputTokens(int64_t scale) const override { return task_->Rows(lengths_.max()); }
  int64_t OutputTokens(int64_t scale) const override { return task_->Rows(lengths_.max()); }
  int64_t SequenceTokens(int64_t scale) const override { return task_->Rows(lengths_.max()); }
  int64_t TrainingInputTokens(int64_t n) const override { return task_->Rows(n); }
  int64_t TrainingSequenceTokens(int64_t n) const override { return task_->Rows(n); }
  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override;
  int64_t RowsOfOneShape(int64_t scale, int64_t asked, int64_t first) const override;
  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override;
  bool HasWholeNumbers(int64_t scale) const override;
  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override;

 private:
  // Size of an evaluation sequence, and its place among the sequences of the same size.
  struct Share {
    int64_t n = 0;
    int64_t place = 0;
    int64_t size = 0;
  };
  Share ShareOf(int64_t asked, int64_t sequence) const;

  void Append(const tasks::Domain& domain, const SampleAddresses& addresses, Batch& batch) const;

  std::unique_ptr<tasks::RegressionTask> task_;
  v1::LengthRange lengths_;
};

}  // namespace lengthwise::worker::data

#endif  // LENGTHWISE_WORKER_DATA_REGRESSION_EXAMPLES_H_
