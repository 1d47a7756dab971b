#include "worker/evaluation/scorer.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/tensor.h"
#include "gtest/gtest.h"
#include "tasks/catalogue.h"

namespace lengthwise::worker::evaluation {
namespace {

using data::BatchTensors;

std::unique_ptr<Scorer> Create(const std::string& task, int64_t members) {
  v1::LengthRange lengths;
  lengths.set_min(2);
  lengths.set_max(2);
  const auto examples = data::CreateExamples(tasks::CreateTask(task, {}).value(), lengths);
  return CreateScorer(*examples, members, at::kCPU, /*length=*/1);
}

at::Tensor Mask(const std::vector<int64_t>& values, at::IntArrayRef shape) {
  return at::tensor(values).view(shape).to(at::kBool);
}

double Metric(const LengthScore& score, const std::string& name) {
  for (const auto& [metric, value] : score.metrics) {
    if (metric == name) return value;
  }
  ADD_FAILURE() << "no " << name;
  return -1;
}

TEST(ScorerTest, MaskAppliesToAccuracyButNotToLoss) {
  const auto scorer = Create("reverse_string", 2);
  // Two sequences of two outputs with two classes.
  const at::Tensor right_twice = at::tensor({3.0, 0.0, 0.0, 3.0, 3.0, 0.0, 3.0, 0.0});
  const at::Tensor outputs = at::cat({right_twice, right_twice.neg()}).view({2, 2, 2, 2});
  const BatchTensors chunk = {
      .classes = at::tensor(std::vector<int64_t>{0, 1, 1, 0}).view({1, 2, 2}),
      .mask = Mask({1, 1, 1, 0}, {1, 2, 2})};
  scorer->Add(outputs.narrow(1, 0, 1),
              {.classes = chunk.classes.narrow(1, 0, 1), .mask = chunk.mask.narrow(1, 0, 1)});
  scorer->Add(outputs.narrow(1, 1, 1),
              {.classes = chunk.classes.narrow(1, 1, 1), .mask = chunk.mask.narrow(1, 1, 1)});
  const std::vector<LengthScore> scores = scorer->Scores();
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_DOUBLE_EQ(scores[0].accuracy, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores[1].accuracy, 1.0 / 3);
  EXPECT_EQ(scores[0].sequences, 2);
  const double sure = -std::log(1 / (1 + std::exp(-3.0))), wrong = sure + 3;
  EXPECT_NEAR(scores[0].loss, (3 * sure + wrong) / 4, 1e-6);
  EXPECT_NEAR(scores[1].loss, (3 * wrong + sure) / 4, 1e-6);
}

TEST(ScorerTest, AccuracyOfNothingIsNotZero) {
  const auto scorer = Create("reverse_string", 1);
  scorer->Add(at::tensor({3.0, 0.0, 0.0, 3.0}).view({1, 1, 2, 2}),
              {.classes = at::tensor(std::vector<int64_t>{0, 1}).view({1, 1, 2}),
               .mask = Mask({0, 0}, {1, 1, 2})});
  const LengthScore score = scorer->Scores().front();
  EXPECT_TRUE(std::isnan(score.accuracy)) << score.accuracy;
  EXPECT_GT(score.loss, 0) << "the loss counts masked values too";
}

// A sequence of one number weighs as much as one of two.
TEST(ScorerTest, ErrorsAreAveragedPerSequence) {
  const auto scorer = Create("cumulative_sum", 1);
  const auto add = [&](std::vector<double> outputs, std::vector<double> targets,
                       const std::vector<int64_t>& mask) {
    const auto m = static_cast<int64_t>(outputs.size());
    scorer->Add(
        at::tensor(outputs).view({1, 1, m, 1}),
        {.number_targets = at::tensor(targets).view({1, 1, m}), .mask = Mask(mask, {1, 1, m})});
  };
  add({1.0, 99}, {3.0, 0}, {1, 0});
  add({10.4, 2.04, 99}, {10.0, 2.0, 0}, {1, 1, 0});
  const LengthScore score = scorer->Scores().front();
  EXPECT_NEAR(score.loss, (4.0 + (0.16 + 0.0016) / 2) / 2, 1e-12);
  // 10.4 is within 0.05 + 5 % of 10, but not within 0.05.
  EXPECT_EQ(score.accuracy, 0.5);
  EXPECT_EQ(Metric(score, "strict_closeness_accuracy"), 0);
  EXPECT_EQ(Metric(score, "either_closeness_accuracy"), 0.5);
  EXPECT_NEAR(Metric(score, "mean_absolute_percentage_error"), (2.0 / 3 + (0.04 + 0.02) / 2) / 2,
              1e-12);
  EXPECT_EQ(score.sequences, 2);
}

// For a target of 1, an error of 0.07 is within 0.05 + 5 %, but within neither alone. For a target
// of 10, an error of 0.3 is within 5 % but not within 0.05, and one of 0.04 is within both.
TEST(ScorerTest, ClosenessHasThreeReadings) {
  const auto accuracies = [](double output, double target) {
    const auto scorer = Create("cumulative_sum", 1);
    scorer->Add(at::tensor({output, 99.0}).view({1, 1, 2, 1}),
                {.number_targets = at::tensor({target, 0.0}).view({1, 1, 2}),
                 .mask = Mask({1, 0}, {1, 1, 2})});
    const LengthScore score = scorer->Scores().front();
    return std::vector<double>{score.accuracy, Metric(score, "either_closeness_accuracy"),
                               Metric(score, "strict_closeness_accuracy")};
  };
  EXPECT_EQ(accuracies(1.07, 1), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(accuracies(10.3, 10), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(accuracies(1.04, 1), (std::vector<double>{1, 1, 1}));
}

TEST(ScorerTest, RoundingNeedsEveryOutputOfASequence) {
  const auto scorer = CreateRoundingScorer(/*rounding_unit=*/0.5, 2);
  // The second member errs by 0.3 in one of two sequences, which rounds to another multiple of 0.5.
  scorer->Add(
      at::tensor({1.2, -2.6, 7.0, 0.4, 3.0, 7.0, 1.2, -2.6, 7.0, 0.7, 3.3, 7.0}).view({2, 2, 3, 1}),
      {.number_targets = at::tensor({1.0, -2.5, 0.0, 0.5, 3.0, 0.0}).view({1, 2, 3}),
       .mask = Mask({1, 1, 0, 1, 1, 0}, {1, 2, 3})});
  const std::vector<LengthScore> scores = scorer->Scores();
  EXPECT_EQ(scores[0].accuracy, 1);
  EXPECT_EQ(scores[1].accuracy, 0.5);
  EXPECT_EQ(scores[0].sequences, 2);
}

}  // namespace
}  // namespace lengthwise::worker::evaluation
