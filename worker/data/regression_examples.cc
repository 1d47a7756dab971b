// Supplies examples of regression. The network sees rows of numbers, some with tokens, and its
// outputs at the rows in the mask are compared with numbers. The axis is the scale c of the
// numbers, 1 in training (positional attention, section 6); training.lengths is the range of how
// many numbers an example has. No LibTorch.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "proto/specification.pb.h"
#include "tasks/regression.h"
#include "worker/data/examples.h"

namespace lengthwise::worker::data {
namespace {

constexpr double kTrainingScale = 1;

// A scale's evaluation sequences cover all of training.lengths in equal shares, longest first; in
// order, each is one shorter than the one before, from the longest again after the shortest. If the
// task has features that training never shows (tasks::Domain::unseen), evaluations use them at
// every scale, and validation only above scale 1.
class RegressionExamples final : public Examples {
 public:
  RegressionExamples(std::unique_ptr<tasks::RegressionTask> task, const v1::LengthRange& lengths)
      : task_(std::move(task)), lengths_(lengths) {}

  Targets targets() const override { return Targets::kNumbers; }
  double rounding_unit() const override { return task_->rounding_unit(); }
  bool has_numbers() const override { return true; }
  int64_t input_columns() const override { return task_->vocabulary(); }
  int64_t output_columns() const override { return 1; }
  int64_t InputTokens(int64_t scale) const override { return task_->Rows(lengths_.max()); }
  int64_t SequenceTokens(int64_t scale) const override { return task_->Rows(lengths_.max()); }
  int64_t TrainingInputTokens(int64_t n) const override { return task_->Rows(n); }
  int64_t TrainingSequenceTokens(int64_t n) const override { return task_->Rows(n); }

  void AppendTraining(const SampleAddresses& addresses, int64_t n, Batch& batch) const override {
    Append({.n = n, .scale = kTrainingScale}, addresses, batch);
  }

  int64_t RowsOfOneShape(int64_t scale, int64_t asked, int64_t first) const override {
    const Share share = ShareOf(asked, first);
    return share.size - share.place;
  }

  void AppendEvaluation(const EvaluationRows& rows, Batch& batch) const override {
    const int64_t lengths = lengths_.max() - lengths_.min() + 1;
    const Share share = rows.in_order ? Share{.n = lengths_.max() - rows.first % lengths,
                                              .place = rows.first / lengths}
                                      : ShareOf(rows.asked, rows.first);
    // Each length and scale has its own samples.
    constexpr uint64_t kMostScales = 1'000'000;
    Append({.n = share.n,
            .scale = static_cast<double>(rows.n),
            .unseen = !rows.validation || static_cast<double>(rows.n) > kTrainingScale,
            .integers = rows.whole_numbers},
           {.seed = rows.seed,
            .purpose = random::Purpose::kEvaluationSamples,
            .step = static_cast<uint64_t>(share.n) * kMostScales + static_cast<uint64_t>(rows.n),
            .rows = RowsFrom(share.place, rows.count)},
           batch);
  }

  bool HasWholeNumbers(int64_t scale) const override {
    const tasks::Domain domain = {
        .n = lengths_.max(), .scale = static_cast<double>(scale), .integers = true};
    return task_->Check(domain).ok();
  }

  absl::StatusOr<GivenSequence> Given(const v1::TokenSequence& input) const override {
    if (task_->vocabulary() > 0) {
      return absl::InvalidArgumentError("the task's inputs are words and numbers");
    }
    if (!input.tokens().empty() && !input.numbers().empty()) {
      return absl::InvalidArgumentError("it has tokens beside its numbers");
    }
    ASSIGN_OR_RETURN(std::vector<double> numbers, GivenNumbers(input));
    const int64_t rows = task_->Rows(lengths_.max());
    if (static_cast<int64_t>(numbers.size()) != rows) {
      return absl::InvalidArgumentError(absl::StrCat("it has ", numbers.size(),
                                                     " numbers; the task's inputs have ", rows,
                                                     ", a scratchpad's 0 among them"));
    }
    GivenSequence given{.length = 1, .numbers = std::move(numbers)};
    given.mask.resize(static_cast<size_t>(rows));
    task_->Mask(lengths_.max(), absl::MakeSpan(given.mask));
    return given;
  }

 private:
  // Size of an evaluation sequence, and its place among the sequences of the same size.
  struct Share {
    int64_t n = 0;
    int64_t place = 0;
    int64_t size = 0;
  };

  Share ShareOf(int64_t asked, int64_t sequence) const {
    const int64_t lengths = lengths_.max() - lengths_.min() + 1;
    Share share{.n = lengths_.max(), .place = sequence};
    for (int64_t i = 0; i < lengths; ++i, --share.n) {
      share.size = asked / lengths + (i < asked % lengths ? 1 : 0);
      if (share.place < share.size) break;
      share.place -= share.size;
    }
    return share;
  }

  void Append(const tasks::Domain& domain, const SampleAddresses& addresses, Batch& batch) const {
    const auto tokens = static_cast<size_t>(task_->Rows(domain.n));
    const size_t old = batch.numbers.size();
    const size_t count = addresses.rows.size() * tokens;
    batch.numbers.resize(old + count);
    batch.number_targets.resize(old + count);
    std::vector<int32_t> words(task_->vocabulary() > 0 ? count : 0);
    tasks::SampleRows(*task_, addresses.seed, addresses.purpose, addresses.step, domain,
                      addresses.rows,
                      {.inputs = absl::MakeSpan(batch.numbers).subspan(old),
                       .tokens = absl::MakeSpan(words),
                       .targets = absl::MakeSpan(batch.number_targets).subspan(old)});
    batch.tokens.insert(batch.tokens.end(), words.begin(), words.end());
    while (batch.mask.size() < old + count) {
      batch.mask.resize(batch.mask.size() + tokens);
      task_->Mask(domain.n, absl::MakeSpan(batch.mask).last(tokens));
    }
    batch.rows += static_cast<int64_t>(addresses.rows.size());
    batch.tokens_per_row = static_cast<int64_t>(tokens);
    batch.outputs_per_row = static_cast<int64_t>(tokens);
  }

  std::unique_ptr<tasks::RegressionTask> task_;
  v1::LengthRange lengths_;
};

}  // namespace

std::unique_ptr<Examples> CreateRegressionExamples(std::unique_ptr<tasks::Task> task,
                                                   const v1::LengthRange& lengths) {
  return std::make_unique<RegressionExamples>(
      std::unique_ptr<tasks::RegressionTask>(static_cast<tasks::RegressionTask*>(task.release())),
      lengths);
}

}  // namespace lengthwise::worker::data
