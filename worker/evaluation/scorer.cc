#include "worker/evaluation/scorer.h"

#include "ATen/ATen.h"
#include "absl/types/span.h"
#include "tasks/numeric/scores.h"

namespace lengthwise::worker::evaluation {
namespace {

using training::BatchTensors;

double Share(double part, int64_t whole) {
  return whole == 0 ? 0 : part / static_cast<double>(whole);
}

// Counts on the device, which is asked for numbers once, at the end.
class ClassScorer : public Scorer {
 public:
  ClassScorer(int64_t members, at::Device device)
      : correct_(at::zeros({members}, at::TensorOptions().dtype(at::kLong).device(device))),
        loss_(at::zeros({members}, at::TensorOptions().dtype(at::kDouble).device(device))),
        counted_(at::zeros({}, correct_.options())) {}

  void Add(const at::Tensor& outputs, const BatchTensors& chunk) override {
    const std::vector<int64_t> shape = {outputs.size(0), outputs.size(1), outputs.size(2), 1};
    const at::Tensor log_likelihoods = at::log_softmax(outputs, -1)
                                           .gather(-1, chunk.classes.unsqueeze(-1).expand(shape))
                                           .squeeze(-1);
    loss_.sub_(log_likelihoods.to(at::kDouble).flatten(1).sum(1));
    correct_.add_(outputs.argmax(-1)
                      .eq(chunk.classes)
                      .logical_and_(chunk.mask)
                      .flatten(1)
                      .sum(1, false, at::kLong));
    counted_.add_(chunk.mask.sum());
    outputs_ += outputs.size(1) * outputs.size(2);
    sequences_ += outputs.size(1);
  }

  std::vector<LengthScore> Scores() const override {
    const at::Tensor correct = correct_.cpu(), loss = loss_.cpu();
    const auto counted = counted_.item<int64_t>();
    std::vector<LengthScore> scores;
    for (int64_t member = 0; member < correct.size(0); ++member) {
      scores.push_back(
          {.accuracy =
               Share(static_cast<double>(correct.const_data_ptr<int64_t>()[member]), counted),
           .loss = Share(loss.const_data_ptr<double>()[member], outputs_),
           .sequences = sequences_});
    }
    return scores;
  }

 private:
  at::Tensor correct_, loss_;  // [P]
  at::Tensor counted_;
  int64_t outputs_ = 0;
  int64_t sequences_ = 0;
};

// A sequence's errors are its mean ones, and a length's the mean over its sequences: sequences of
// different sizes count alike.
class NumberScorer : public Scorer {
 public:
  NumberScorer(int64_t members, double rounding_unit)
      : rounding_unit_(rounding_unit), sums_(static_cast<size_t>(members)) {}

  void Add(const at::Tensor& outputs, const BatchTensors& chunk) override {
    const at::Tensor numbers = outputs.squeeze(-1).to(at::kCPU, at::kDouble).contiguous();
    const at::Tensor targets = chunk.number_targets.to(at::kCPU, at::kDouble).contiguous();
    const at::Tensor mask = chunk.mask.to(at::kCPU, at::kByte).contiguous();
    const int64_t rows = numbers.size(1);
    const auto m = static_cast<size_t>(numbers.size(2));
    const auto row_of = [m](const auto* values, int64_t row) {
      return absl::MakeConstSpan(values + static_cast<size_t>(row) * m, m);
    };
    for (int64_t member = 0; member < numbers.size(0); ++member) {
      for (int64_t row = 0; row < rows; ++row) {
        AddSequence(row_of(numbers.const_data_ptr<double>(), member * rows + row),
                    row_of(targets.const_data_ptr<double>(), row),
                    row_of(mask.const_data_ptr<uint8_t>(), row),
                    sums_[static_cast<size_t>(member)]);
      }
    }
    sequences_ += rows;
  }

  std::vector<LengthScore> Scores() const override {
    std::vector<LengthScore> scores;
    for (const Sums& sums : sums_) {
      scores.push_back(
          {.accuracy = Share(static_cast<double>(sums.close), sequences_),
           .loss = Share(sums.squared_error, sequences_),
           .sequences = sequences_,
           .metrics = {{"mean_absolute_percentage_error", Share(sums.percentage_error, sequences_)},
                       {"rounding_accuracy", Share(static_cast<double>(sums.rounded), sequences_)},
                       {"strict_closeness_accuracy",
                        Share(static_cast<double>(sums.strictly_close), sequences_)}}});
    }
    return scores;
  }

 private:
  struct Sums {
    double squared_error = 0;
    double percentage_error = 0;
    int64_t close = 0;
    int64_t strictly_close = 0;
    int64_t rounded = 0;
  };

  void AddSequence(absl::Span<const double> numbers, absl::Span<const double> targets,
                   absl::Span<const uint8_t> mask, Sums& sums) const {
    using tasks::numeric::Closeness;
    const tasks::numeric::Tolerance tolerance;
    sums.squared_error += tasks::numeric::SquaredErrors(numbers, targets, mask).Mean();
    sums.percentage_error +=
        tasks::numeric::AbsolutePercentageErrors(numbers, targets, mask).Mean();
    sums.close += tasks::numeric::AllClose(numbers, targets, mask, Closeness::kSum, tolerance);
    sums.strictly_close +=
        tasks::numeric::AllClose(numbers, targets, mask, Closeness::kBoth, tolerance);
    sums.rounded += tasks::numeric::AllRoundToTarget(numbers, targets, mask, rounding_unit_);
  }

  double rounding_unit_;
  std::vector<Sums> sums_;  // by member
  int64_t sequences_ = 0;
};

}  // namespace

std::unique_ptr<Scorer> CreateScorer(const training::Examples& examples, int64_t members,
                                     at::Device device) {
  if (examples.targets() == training::Targets::kNumbers) {
    return std::make_unique<NumberScorer>(members, examples.rounding_unit());
  }
  return std::make_unique<ClassScorer>(members, device);
}

}  // namespace lengthwise::worker::evaluation
