#include "worker/evaluation/scorer.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/log_softmax.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "tasks/numeric/scores.h"

namespace lengthwise::worker::evaluation {
namespace {

using data::BatchTensors;

double Share(double part, int64_t whole, double of_nothing = 0) {
  return whole == 0 ? of_nothing : part / static_cast<double>(whole);
}

// Returns row `row` of the matrices' horizontal concatenation.
std::vector<float> JoinedRow(const std::vector<at::Tensor>& parts, int64_t row) {
  std::vector<float> joined;
  for (const at::Tensor& part : parts) {
    const at::Tensor numbers = part.select(0, row).contiguous();
    const float* const first = numbers.const_data_ptr<float>();
    joined.insert(joined.end(), first, first + numbers.numel());
  }
  return joined;
}

// Counts on the device and reads the results back once, at the end.
class ClassScorer : public Scorer {
 public:
  ClassScorer(int64_t members, at::Device device, bool each_sequence)
      : each_sequence_(each_sequence),
        correct_(at::zeros({members}, at::TensorOptions().dtype(at::kLong).device(device))),
        loss_(at::zeros({members}, at::TensorOptions().dtype(at::kDouble).device(device))),
        counted_(at::zeros({}, correct_.options())) {}

  void Add(const at::Tensor& outputs, const BatchTensors& chunk) override {
    const std::vector<int64_t> shape = {outputs.size(0), outputs.size(1), outputs.size(2), 1};
    const at::Tensor log_likelihoods = at::log_softmax(outputs, -1)
                                           .gather(-1, chunk.classes.unsqueeze(-1).expand(shape))
                                           .squeeze(-1);
    loss_.sub_(log_likelihoods.to(at::kDouble).flatten(1).sum(1));
    const at::Tensor right = outputs.argmax(-1).eq(chunk.classes).logical_and_(chunk.mask);
    correct_.add_(right.flatten(1).sum(1, false, at::kLong));
    if (each_sequence_) {
      each_accuracy_.push_back(
          right.sum(2).to(at::kFloat).div(chunk.mask.sum(2).clamp_min(1)).cpu());
      each_loss_.push_back(log_likelihoods.to(at::kFloat).mean(2).neg().cpu());
    }
    counted_.add_(chunk.mask.sum());
    outputs_ += outputs.size(1) * outputs.size(2);
    sequences_ += outputs.size(1);
  }

  std::vector<LengthScore> Scores() const override {
    const at::Tensor correct = correct_.cpu(), loss = loss_.cpu();
    const auto counted = counted_.item<int64_t>();
    std::vector<LengthScore> scores;
    for (int64_t member = 0; member < correct.size(0); ++member) {
      const auto right = static_cast<double>(correct.const_data_ptr<int64_t>()[member]);
      // If no output counts, no model is right or wrong.
      scores.push_back({.accuracy = Share(right, counted, std::numeric_limits<double>::quiet_NaN()),
                        .loss = Share(loss.const_data_ptr<double>()[member], outputs_),
                        .sequences = sequences_,
                        .each_accuracy = JoinedRow(each_accuracy_, member),
                        .each_loss = JoinedRow(each_loss_, member)});
    }
    return scores;
  }

 private:
  bool each_sequence_;
  std::vector<at::Tensor> each_accuracy_, each_loss_;  // [P, B] of each chunk
  at::Tensor correct_, loss_;                          // [P]
  at::Tensor counted_;
  int64_t outputs_ = 0;
  int64_t sequences_ = 0;
};

// A member's outputs for a sequence and their targets, numbers or classes; those with mask 0 do not
// count.
struct NumberSequence {
  size_t member = 0;
  int64_t row = 0;
  absl::Span<const double> numbers;
  absl::Span<const double> targets;
  absl::Span<const uint8_t> mask;
};

// Calls `take` for every sequence of every member; returns how many sequences a member has.
template <typename Take>
int64_t ForEachSequence(const at::Tensor& outputs, const BatchTensors& chunk, Take take) {
  const bool classes = chunk.classes.defined();
  const at::Tensor numbers =
      (classes ? outputs.argmax(-1) : outputs.squeeze(-1)).to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor targets =
      (classes ? chunk.classes : chunk.number_targets).to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor mask = chunk.mask.to(at::kCPU, at::kByte).contiguous();
  const int64_t rows = numbers.size(1);
  const auto m = static_cast<size_t>(numbers.size(2));
  const auto row_of = [m](const auto* values, int64_t row) {
    return absl::MakeConstSpan(values + static_cast<size_t>(row) * m, m);
  };
  for (int64_t member = 0; member < numbers.size(0); ++member) {
    for (int64_t row = 0; row < rows; ++row) {
      take(NumberSequence{.member = static_cast<size_t>(member),
                          .row = row,
                          .numbers = row_of(numbers.const_data_ptr<double>(), member * rows + row),
                          .targets = row_of(targets.const_data_ptr<double>(), row),
                          .mask = row_of(mask.const_data_ptr<uint8_t>(), row)});
    }
  }
  return rows;
}

// Averages errors within each sequence first and then over sequences, so that sequences of
// different sizes count alike. With `rounding_unit`, accuracy is by rounding.
class NumberScorer : public Scorer {
 public:
  NumberScorer(int64_t members, bool each_sequence,
               std::optional<double> rounding_unit = std::nullopt)
      : each_sequence_(each_sequence),
        rounding_unit_(rounding_unit),
        sums_(static_cast<size_t>(members)) {}

  void Add(const at::Tensor& outputs, const BatchTensors& chunk) override {
    sequences_ += ForEachSequence(outputs, chunk, [this](const NumberSequence& sequence) {
      AddSequence(sequence, sums_[sequence.member]);
    });
  }

  std::vector<LengthScore> Scores() const override {
    std::vector<LengthScore> scores;
    for (const Sums& sums : sums_) {
      scores.push_back(
          {.accuracy = Share(static_cast<double>(sums.close), sequences_),
           .loss = Share(sums.squared_error, sequences_),
           .sequences = sequences_,
           .metrics = {{"mean_absolute_percentage_error", Share(sums.percentage_error, sequences_)},
                       {"either_closeness_accuracy",
                        Share(static_cast<double>(sums.either_close), sequences_)},
                       {"strict_closeness_accuracy",
                        Share(static_cast<double>(sums.strictly_close), sequences_)}},
           .each_accuracy = sums.each_accuracy,
           .each_loss = sums.each_loss});
    }
    return scores;
  }

 private:
  struct Sums {
    double squared_error = 0;
    double percentage_error = 0;
    int64_t close = 0;
    int64_t either_close = 0;
    int64_t strictly_close = 0;
    std::vector<float> each_accuracy, each_loss;
  };

  void AddSequence(const NumberSequence& sequence, Sums& sums) const {
    using tasks::numeric::Closeness;
    const auto all_close = [&sequence](Closeness closeness) {
      return tasks::numeric::AllClose(sequence.numbers, sequence.targets, sequence.mask, closeness);
    };
    const double squared_error =
        tasks::numeric::MeanSquaredError(sequence.numbers, sequence.targets, sequence.mask);
    const bool is_close = rounding_unit_.has_value()
                              ? tasks::numeric::AllRoundToTarget(sequence.numbers, sequence.targets,
                                                                 sequence.mask, *rounding_unit_)
                              : all_close(Closeness::kSum);
    sums.squared_error += squared_error;
    sums.percentage_error += tasks::numeric::MeanAbsolutePercentageError(
        sequence.numbers, sequence.targets, sequence.mask);
    sums.close += is_close;
    if (each_sequence_) {
      sums.each_accuracy.push_back(is_close ? 1 : 0);
      sums.each_loss.push_back(static_cast<float>(squared_error));
    }
    sums.either_close += all_close(Closeness::kEither);
    sums.strictly_close += all_close(Closeness::kBoth);
  }

  bool each_sequence_;
  std::optional<double> rounding_unit_;
  std::vector<Sums> sums_;  // by member
  int64_t sequences_ = 0;
};

class AnswerScorer : public Scorer {
 public:
  AnswerScorer(std::unique_ptr<Scorer> scorer, const data::Examples& examples, int64_t members,
               int64_t length, int32_t answers)
      : scorer_(std::move(scorer)),
        examples_(examples),
        length_(length),
        selections_(static_cast<size_t>(members), AnswerSelection(answers)) {}

  void Add(const at::Tensor& outputs, const BatchTensors& chunk) override {
    scorer_->Add(outputs, chunk);
    const int64_t places = examples_.has_placeholders() ? outputs.size(2) : 0;
    const auto on_host = [places](const at::Tensor& values, at::ScalarType type) {
      if (!values.defined()) return values;
      return values.select(0, 0)
          .narrow(1, 0, values.size(2) - places)
          .to(at::kCPU, type)
          .contiguous();
    };
    const at::Tensor tokens = on_host(chunk.input.tokens, at::kLong);
    const at::Tensor numbers = on_host(chunk.input.numbers, at::kDouble);
    ForEachSequence(outputs, chunk, [&](const NumberSequence& sequence) {
      std::vector<int32_t> wrong;
      std::vector<std::string> expected, given;
      for (size_t i = 0; i < sequence.mask.size(); ++i) {
        if (sequence.mask[i] == 0) continue;
        if (!IsRight(sequence, i)) wrong.push_back(static_cast<int32_t>(given.size()));
        expected.push_back(Text(sequence.targets[i]));
        given.push_back(Text(sequence.numbers[i]));
      }
      v1::Answer* const answer = selections_[sequence.member].Add(length_, wrong.empty());
      if (answer == nullptr) return;
      answer->mutable_wrong()->Add(wrong.begin(), wrong.end());
      answer->mutable_expected()->Assign(expected.begin(), expected.end());
      answer->mutable_given()->Assign(given.begin(), given.end());
      answer->set_separator(std::string(examples_.separator()));
      answer->set_input(Input(tokens, numbers, sequence.row));
    });
  }

  std::vector<LengthScore> Scores() const override {
    std::vector<LengthScore> scores = scorer_->Scores();
    for (size_t i = 0; i < scores.size(); ++i) scores[i].answers = selections_[i].answers();
    return scores;
  }

 private:
  bool is_number() const { return examples_.targets() == data::Targets::kNumbers; }

  bool IsRight(const NumberSequence& sequence, size_t i) const {
    if (!is_number()) return sequence.numbers[i] == sequence.targets[i];
    return tasks::numeric::AllClose(sequence.numbers.subspan(i, 1), sequence.targets.subspan(i, 1),
                                    sequence.mask.subspan(i, 1), tasks::numeric::Closeness::kSum);
  }

  std::string Text(double output) const {
    if (is_number()) return absl::StrCat(output);
    return examples_.Symbol(static_cast<int64_t>(output), /*is_target=*/true);
  }

  // Either tensor [B, n] may be undefined.
  std::string Input(const at::Tensor& tokens, const at::Tensor& numbers, int64_t row) const {
    std::vector<std::string> symbols;
    for (int64_t i = 0; i < (tokens.defined() ? tokens : numbers).size(1); ++i) {
      const int64_t token =
          tokens.defined() ? tokens.const_data_ptr<int64_t>()[row * tokens.size(1) + i] : -1;
      symbols.push_back(
          token >= 0 ? examples_.Symbol(token, /*is_target=*/false)
                     : absl::StrCat(numbers.const_data_ptr<double>()[row * numbers.size(1) + i]));
    }
    return absl::StrJoin(symbols, examples_.separator());
  }

  const std::unique_ptr<Scorer> scorer_;
  const data::Examples& examples_;
  const int64_t length_;
  std::vector<AnswerSelection> selections_;  // by member
};

}  // namespace

std::unique_ptr<Scorer> CreateScorer(const data::Examples& examples, int64_t members,
                                     at::Device device, int64_t length,
                                     const ScoreOptions& options) {
  std::unique_ptr<Scorer> scorer;
  if (examples.targets() == data::Targets::kNumbers) {
    scorer = std::make_unique<NumberScorer>(members, options.each_sequence);
  } else {
    scorer = std::make_unique<ClassScorer>(members, device, options.each_sequence);
  }
  if (options.answers <= 0) return scorer;
  return std::make_unique<AnswerScorer>(std::move(scorer), examples, members, length,
                                        options.answers);
}

std::unique_ptr<Scorer> CreateRoundingScorer(double rounding_unit, int64_t members) {
  return std::make_unique<NumberScorer>(members, /*each_sequence=*/false, rounding_unit);
}

}  // namespace lengthwise::worker::evaluation
