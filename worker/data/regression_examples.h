// Regression: the network sees rows of numbers, and perhaps tokens among them, and its output at
// the rows that count is compared with a number. The axis is the scale c of the numbers, 1 in
// training (positional attention, section 6); training.lengths is how many numbers there are. No
// LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_REGRESSION_EXAMPLES_H_
#define LENGTHWISE_WORKER_DATA_REGRESSION_EXAMPLES_H_

#include <memory>

#include "proto/specification.pb.h"
#include "tasks/regression.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {

// Evaluation sequences of a scale are of all of training.lengths in equal shares, the longest
// first. They have what training never shows, where the task has that (tasks::Domain::unseen): at
// every scale, in validation above scale 1.
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
  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override;
  int64_t RowsOfOneShape(int64_t scale, int64_t asked, int64_t first) const override;
  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override;
  bool HasWholeNumbers(int64_t scale) const override;
  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override;

 private:
  // The numbers of an evaluation sequence and its place among those of as many.
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
