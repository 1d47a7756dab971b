#include "server/coordination/experiment_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/length_accuracies.h"

namespace lengthwise::server {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pointwise;

using Cell = v1::SummarizeExperimentResponse::Cell;

ExperimentSummary::Trial TrialAt(int32_t index, const std::string& encoding = "none") {
  return {.index = index,
          .id = "t" + std::to_string(index),
          .task = "parity_check",
          .network = "encoder",
          .encoding = encoding,
          .learning_rate = 0.001,
          .steps = 1000};
}

// Accuracies and losses at lengths 1, 2, 3, ..., of which two are seen.
v1::LengthAccuracies AccuraciesOf(const std::vector<double>& values,
                                  const std::vector<double>& losses = {}) {
  v1::LengthAccuracies accuracies;
  accuracies.set_final(true);
  for (size_t i = 0; i < values.size(); ++i) {
    accuracies.add_lengths(static_cast<int32_t>(i + 1));
    accuracies.add_accuracies(values[i]);
  }
  accuracies.mutable_losses()->Add(losses.begin(), losses.end());
  SetMeans(/*seen_up_to=*/2, accuracies);
  return accuracies;
}

v1::Outcome Trained(double seconds, int64_t steps) {
  v1::Outcome outcome;
  outcome.set_kind(v1::Outcome::COMPLETED);
  outcome.set_training_seconds(seconds);
  outcome.set_training_steps(steps);
  return outcome;
}

TEST(ExperimentSummaryTest, ExperimentWithoutTrialsHasNoCells) {
  EXPECT_THAT(ExperimentSummary().Summarize().cells(), IsEmpty());
}

TEST(ExperimentSummaryTest, CellsGroupSeedsInTheOrderOfTheGrid) {
  ExperimentSummary summary;
  for (const int32_t index : {3, 1, 2, 0}) summary.Add(TrialAt(index, index < 2 ? "rope" : "none"));
  ExperimentSummary::Trial slower = TrialAt(4, "none");
  slower.learning_rate = 0.0001;
  summary.Add(slower);
  const v1::SummarizeExperimentResponse response = summary.Summarize();
  ASSERT_EQ(response.cells_size(), 3);
  EXPECT_EQ(response.cells(0).encoding(), "rope");
  EXPECT_EQ(response.cells(0).task(), "parity_check");
  EXPECT_EQ(response.cells(0).network(), "encoder");
  EXPECT_EQ(response.cells(0).trials().queued(), 2);
  EXPECT_EQ(response.cells(1).encoding(), "none");
  EXPECT_EQ(response.cells(1).learning_rate(), 0.001);
  EXPECT_EQ(response.cells(2).learning_rate(), 0.0001);
}

TEST(ExperimentSummaryTest, SummarizesSuccessfulTrials) {
  ExperimentSummary summary;
  for (int32_t index = 0; index < 5; ++index) summary.Add(TrialAt(index));
  // Unseen means 0.2, 0.6 and 0.4; seen means 1, 0.75 and 0.5.
  summary.Succeed(0, AccuraciesOf({1, 1, 0.1, 0.3}), Trained(10, 1000));
  summary.Succeed(1, AccuraciesOf({1, 0.5, 0.7, 0.5}), Trained(20, 1000));
  summary.Succeed(2, AccuraciesOf({0.5, 0.5, 0.4, 0.4}), Trained(50, 500));
  summary.SetState(3, v1::RUNNING);
  summary.SetState(4, v1::FAILED);
  const Cell cell = summary.Summarize().cells(0);
  EXPECT_EQ(cell.trials().succeeded(), 3);
  EXPECT_EQ(cell.trials().running(), 1);
  EXPECT_EQ(cell.trials().failed(), 1);
  EXPECT_EQ(cell.unseen_accuracy().trials(), 3);
  EXPECT_NEAR(cell.unseen_accuracy().mean(), 0.4, 1e-15);
  EXPECT_NEAR(cell.unseen_accuracy().deviation(), 0.2, 1e-15);
  EXPECT_NEAR(cell.unseen_accuracy().min(), 0.2, 1e-15);
  EXPECT_NEAR(cell.unseen_accuracy().max(), 0.6, 1e-15);
  EXPECT_NEAR(cell.seen_accuracy().mean(), 0.75, 1e-15);
  EXPECT_NEAR(cell.seen_accuracy().deviation(), 0.25, 1e-15);
  EXPECT_NEAR(cell.training_seconds().mean(), 80.0 / 3, 1e-13);
  EXPECT_EQ(cell.steps_per_second().min(), 10);
  EXPECT_EQ(cell.steps_per_second().max(), 100);
  EXPECT_THAT(cell.lengths(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(cell.mean_accuracies(),
              Pointwise(DoubleNear(1e-12), {2.5 / 3, 2.0 / 3, 1.2 / 3, 1.2 / 3}));
}

TEST(ExperimentSummaryTest, OneTrialHasNoDeviationAndNoTrialNoValues) {
  ExperimentSummary summary;
  summary.Add(TrialAt(0));
  const Cell empty = summary.Summarize().cells(0);
  EXPECT_EQ(empty.unseen_accuracy().trials(), 0);
  EXPECT_EQ(empty.unseen_accuracy().max(), 0);
  EXPECT_EQ(empty.best_trial(), "");
  summary.Succeed(0, AccuraciesOf({1, 1, 0.5}), Trained(10, 1000));
  const Cell one = summary.Summarize().cells(0);
  EXPECT_EQ(one.unseen_accuracy().trials(), 1);
  EXPECT_EQ(one.unseen_accuracy().mean(), 0.5);
  EXPECT_EQ(one.unseen_accuracy().deviation(), 0);
}

// Trial 0 is best on the seen lengths and worst on the unseen ones.
TEST(ExperimentSummaryTest, RuleOfChoiceDecidesTheBestTrial) {
  ExperimentSummary summary;
  for (int32_t index = 0; index < 3; ++index) summary.Add(TrialAt(index));
  summary.Succeed(0, AccuraciesOf({1, 1, 0.1, 0.3}), Trained(10, 1000));
  summary.Succeed(1, AccuraciesOf({1, 0.5, 0.7, 0.5}), Trained(20, 1000));
  summary.Succeed(2, AccuraciesOf({0.5, 0.5, 0.4, 0.4}), Trained(50, 500));
  const Cell seen = summary.Summarize().cells(0);
  EXPECT_EQ(seen.best_trial(), "t0");
  EXPECT_EQ(seen.selection().max(), 1);
  EXPECT_NEAR(seen.best_unseen_accuracy(), 0.2, 1e-15);
  const Cell unseen = summary.Summarize("unseen").cells(0);
  EXPECT_EQ(unseen.best_trial(), "t1");
  EXPECT_NEAR(unseen.selection().max(), 0.6, 1e-15);
  EXPECT_NEAR(unseen.best_unseen_accuracy(), 0.6, 1e-15);

  ExperimentSummary specified;
  for (int32_t index = 0; index < 2; ++index) {
    ExperimentSummary::Trial trial = TrialAt(index);
    trial.select_unseen = true;
    specified.Add(trial);
  }
  specified.Succeed(0, AccuraciesOf({1, 1, 0}), Trained(10, 1000));
  specified.Succeed(1, AccuraciesOf({0, 0, 1}), Trained(10, 1000));
  EXPECT_EQ(specified.Summarize().cells(0).best_trial(), "t1");
  EXPECT_EQ(specified.Summarize("seen").cells(0).best_trial(), "t0");
}

TEST(ExperimentSummaryTest, ValidationDecidesBeforeSeenLengths) {
  ExperimentSummary summary;
  for (int32_t index = 0; index < 2; ++index) {
    summary.Add(TrialAt(index));
    v1::LengthAccuracies accuracies = AccuraciesOf({1.0 - index, 1});
    accuracies.set_validation_accuracy(0.5 + 0.1 * index);
    summary.Succeed(index, accuracies, Trained(10, 1000));
  }
  EXPECT_EQ(summary.Summarize().cells(0).best_trial(), "t1");
}

TEST(ExperimentSummaryTest, LowerLossDecidesBetweenEqualAccuracies) {
  ExperimentSummary summary;
  for (int32_t index = 0; index < 3; ++index) {
    summary.Add(TrialAt(index));
    const double loss = index == 0 ? 2 : 1;
    summary.Succeed(index, AccuraciesOf({1, 1, 0.5}, {loss, loss, loss}), Trained(10, 1000));
  }
  const Cell cell = summary.Summarize().cells(0);
  EXPECT_EQ(cell.best_trial(), "t1");
  EXPECT_EQ(cell.best_loss(), 1);
  EXPECT_NEAR(cell.selection_loss(), 4.0 / 3, 1e-15);
}

TEST(ExperimentSummaryTest, NothingChoosesWithoutSeenLengths) {
  ExperimentSummary summary;
  v1::LengthAccuracies accuracies;
  accuracies.add_lengths(3);
  accuracies.add_accuracies(0.5);
  SetMeans(/*seen_up_to=*/2, accuracies);
  summary.Add(TrialAt(0));
  summary.Succeed(0, accuracies, Trained(10, 1000));
  EXPECT_EQ(summary.Summarize().cells(0).best_trial(), "t0");  // no choice
  summary.Add(TrialAt(1));
  summary.Succeed(1, accuracies, Trained(10, 1000));
  EXPECT_EQ(summary.Summarize().cells(0).best_trial(), "");
  EXPECT_EQ(summary.Summarize("unseen").cells(0).best_trial(), "t0");
}

TEST(ExperimentSummaryTest, SeenLengthsDecideWithoutUnseenOnes) {
  ExperimentSummary summary;
  for (int32_t index = 0; index < 4; ++index) summary.Add(TrialAt(index));
  for (const int32_t index : {3, 2, 1}) {
    summary.Succeed(index, AccuraciesOf({1, 0.5}), Trained(10, 1000));
  }
  summary.Succeed(0, AccuraciesOf({0.25, 0.5}), Trained(10, 1000));
  const Cell cell = summary.Summarize("unseen").cells(0);
  EXPECT_EQ(cell.unseen_accuracy().trials(), 0);
  EXPECT_EQ(cell.seen_accuracy().trials(), 4);
  EXPECT_FALSE(cell.has_best_unseen_accuracy());
  EXPECT_EQ(cell.best_trial(), "t1");
}

TEST(ExperimentSummaryTest, SummarizesMeasuredTrainingAccuracies) {
  ExperimentSummary summary;
  for (int32_t index = 0; index < 4; ++index) summary.Add(TrialAt(index));
  v1::LengthAccuracies accuracies = AccuraciesOf({1, 1, 0.5});
  summary.Succeed(0, accuracies, Trained(10, 1000));
  EXPECT_FALSE(summary.Summarize().cells(0).has_training_accuracy());
  for (int32_t index = 1; index < 4; ++index) {
    accuracies.set_training_accuracy(0.5 * index);  // 0.5, 1 and an impossible accuracy
    summary.Succeed(index, accuracies, Trained(10, 1000));
  }
  const v1::SummarizeExperimentResponse::Statistic training =
      summary.Summarize().cells(0).training_accuracy();
  EXPECT_EQ(training.trials(), 3);
  EXPECT_NEAR(training.mean(), 2.5 / 3, 1e-15);
  EXPECT_NEAR(training.deviation(), std::sqrt(1.0 / 12), 1e-15);
  EXPECT_EQ(training.min(), 0.5);
  EXPECT_EQ(training.max(), 1);
}

TEST(ExperimentSummaryTest, MissingStepsAreAllStepsOfTheSpecification) {
  ExperimentSummary summary;
  for (int32_t index = 0; index < 3; ++index) summary.Add(TrialAt(index));
  summary.Succeed(0, AccuraciesOf({1}), Trained(10, 0));  // all 1000 of its specification
  summary.Succeed(1, AccuraciesOf({1}), Trained(10, 200));
  summary.Succeed(2, AccuraciesOf({1}), Trained(0, 0));
  const Cell cell = summary.Summarize().cells(0);
  EXPECT_EQ(cell.steps_per_second().trials(), 2);
  EXPECT_EQ(cell.steps_per_second().max(), 100);
  EXPECT_EQ(cell.steps_per_second().min(), 20);
  EXPECT_EQ(cell.training_seconds().trials(), 2);
}

TEST(ExperimentSummaryTest, EndedAndUnknownTrialsDoNotChange) {
  ExperimentSummary summary;
  summary.Add(TrialAt(0));
  summary.Add(TrialAt(1));
  summary.Succeed(0, AccuraciesOf({0.5}), Trained(10, 1000));
  summary.SetState(1, v1::CANCELLED);
  const std::string before = summary.Summarize().SerializeAsString();
  summary.Add(TrialAt(0, "rope"));
  summary.Succeed(0, AccuraciesOf({1}), Trained(20, 1000));
  summary.Succeed(1, AccuraciesOf({1}), Trained(20, 1000));
  summary.SetState(0, v1::RUNNING);
  summary.SetState(7, v1::RUNNING);
  summary.Succeed(7, AccuraciesOf({1}), Trained(20, 1000));
  EXPECT_EQ(summary.Summarize().SerializeAsString(), before);
}

TEST(ExperimentSummaryTest, TrialsMayDifferInEvaluatedLengths) {
  ExperimentSummary summary;
  summary.Add(TrialAt(0));
  summary.Add(TrialAt(1));
  summary.Succeed(0, AccuraciesOf({1, 0.5, 0.25}), Trained(10, 1000));
  v1::LengthAccuracies other;
  for (const int32_t length : {9, 2}) {
    other.add_lengths(length);
    other.add_accuracies(1);
  }
  summary.Succeed(1, other, Trained(10, 1000));
  const Cell cell = summary.Summarize().cells(0);
  EXPECT_THAT(cell.lengths(), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(cell.mean_accuracies(), ElementsAre(1, 0.75, 0.25, 1));
}

// Quantiles as NumPy's percentile computes them.
TEST(ExperimentSummaryTest, TrialsComparedByLossesHaveTheirQuantiles) {
  ExperimentSummary summary;
  const std::vector<std::vector<double>> losses = {
      {0.1, 1, 10, 30}, {0.2, 2, 20, 60}, {0.5, 5, 50, 70}};
  for (int32_t trial = 0; trial < 4; ++trial) {
    ExperimentSummary::Trial known = TrialAt(trial);
    known.compared_by_loss = true;
    summary.Add(known);
  }
  for (size_t trial = 0; trial < losses.size(); ++trial) {
    summary.Succeed(static_cast<int32_t>(trial), AccuraciesOf({1, 1, 0, 0}, losses[trial]),
                    Trained(10, 100));
  }
  const v1::SummarizeExperimentResponse answer = summary.Summarize();
  const Cell& cell = answer.cells(0);
  ASSERT_EQ(cell.losses_size(), 4);
  EXPECT_EQ(cell.losses(2).trials(), 3);
  EXPECT_DOUBLE_EQ(cell.losses(2).median(), 20);
  EXPECT_DOUBLE_EQ(cell.losses(2).low(), 12);
  EXPECT_DOUBLE_EQ(cell.losses(2).high(), 44);
  // Lengths up to 2 are seen.
  EXPECT_DOUBLE_EQ(cell.seen_loss().median(), 1.1);
  EXPECT_DOUBLE_EQ(cell.unseen_loss().median(), 40);

  ExperimentSummary accuracies_alone;
  accuracies_alone.Add(TrialAt(0));
  accuracies_alone.Succeed(0, AccuraciesOf({1, 1}, {0.5, 0.5}), Trained(10, 100));
  EXPECT_EQ(accuracies_alone.Summarize().cells(0).losses_size(), 0);
}

// Adds a trial that is compared by loss and succeeded with these losses at lengths 1, 2, 3, ...
void SucceedWithLosses(int32_t index, const std::vector<double>& accuracies,
                       const std::vector<double>& losses, ExperimentSummary& summary) {
  ExperimentSummary::Trial trial = TrialAt(index);
  trial.compared_by_loss = true;
  summary.Add(trial);
  summary.Succeed(index, AccuraciesOf(accuracies, losses), Trained(10, 100));
}

TEST(ExperimentSummaryTest, BestTrialComparedByLossHasTheLowestUnseenLoss) {
  ExperimentSummary summary;
  // Lengths up to 2 are seen. Trial 3 has the lowest seen loss and the highest accuracies.
  SucceedWithLosses(0, {0, 0, 0}, {1, 1, std::numeric_limits<double>::quiet_NaN()}, summary);
  SucceedWithLosses(1, {0, 0, 0.5}, {1, 1, 3}, summary);
  SucceedWithLosses(2, {0, 0, 0.1}, {1, 1, 2}, summary);
  SucceedWithLosses(3, {1, 1, 1}, {0, 0, 9}, summary);
  SucceedWithLosses(4, {0, 0, 0.2}, {1, 1, 2}, summary);
  EXPECT_EQ(summary.Summarize("unseen").cells(0).best_trial(), "t2");
  EXPECT_EQ(summary.Summarize().cells(0).best_trial(), "t3");
}

TEST(ExperimentSummaryTest, SeenLossesDecideWithoutUnseenOnes) {
  ExperimentSummary summary;
  SucceedWithLosses(0, {1, 1}, {2, 3}, summary);
  SucceedWithLosses(1, {0, 0}, {1, 3}, summary);
  EXPECT_EQ(summary.Summarize("unseen").cells(0).best_trial(), "t1");
}

TEST(ExperimentSummaryTest, AccuraciesAreClamped) {
  ExperimentSummary summary;
  summary.Add(TrialAt(0));
  summary.Succeed(0, AccuraciesOf({std::numeric_limits<double>::quiet_NaN(), 1e300, -5}),
                  Trained(std::numeric_limits<double>::quiet_NaN(), 1000));
  const Cell cell = summary.Summarize().cells(0);
  EXPECT_THAT(cell.mean_accuracies(), ElementsAre(0, 1, 0));
  EXPECT_EQ(cell.training_seconds().trials(), 0);
}

TEST(ExperimentSummaryTest, AnswerDoesNotDependOnTheOrderOfOutcomes) {
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> uniform(0, 1);
  constexpr int32_t kTrials = 60;
  std::vector<v1::LengthAccuracies> accuracies;
  std::vector<v1::Outcome> outcomes;
  for (int32_t index = 0; index < kTrials; ++index) {
    std::vector<double> values(20);
    for (double& value : values) value = uniform(random);
    accuracies.push_back(AccuraciesOf(values));
    outcomes.push_back(Trained(uniform(random) * 1000, 1000));
  }
  std::vector<int32_t> order(kTrials);
  for (int32_t index = 0; index < kTrials; ++index) order[index] = index;
  std::string first;
  for (int repetition = 0; repetition < 10; ++repetition) {
    ExperimentSummary summary;
    for (const int32_t index : order) summary.Add(TrialAt(index, index % 3 == 0 ? "rope" : "none"));
    std::shuffle(order.begin(), order.end(), random);
    for (const int32_t index : order) summary.Succeed(index, accuracies[index], outcomes[index]);
    const std::string answer = summary.Summarize().SerializeAsString();
    if (repetition == 0) first = answer;
    EXPECT_EQ(answer, first);
  }
}

TEST(ExperimentSummaryTest, MeansOfThousandsAreExactToATrillionth) {
  constexpr int32_t kTrials = 5000;
  ExperimentSummary summary;
  for (int32_t index = 0; index < kTrials; ++index) {
    summary.Add(TrialAt(index));
    summary.Succeed(index, AccuraciesOf({0.1, 1.0 / 3}), Trained(1, 1));
  }
  const Cell cell = summary.Summarize().cells(0);
  EXPECT_NEAR(cell.mean_accuracies(0), 0.1, 1e-12);
  EXPECT_NEAR(cell.mean_accuracies(1), 1.0 / 3, 1e-12);
  EXPECT_NEAR(cell.seen_accuracy().deviation(), 0, 1e-12);
}

// numpy.mean(v), numpy.std(v, ddof=1), numpy.quantile(v, q), NumPy's defaults.
TEST(ExperimentSummaryTest, StatisticsAreNumpys) {
  const std::vector<double> values = {3.1, 2, 7.5, 0.25, 9, 1};
  ExperimentSummary summary;
  for (int32_t index = 0; index < 6; ++index) {
    ExperimentSummary::Trial trial = TrialAt(index);
    trial.compared_by_loss = true;
    summary.Add(trial);
    const double value = values[static_cast<size_t>(index)];
    summary.Succeed(index, AccuraciesOf({0}, {value}), Trained(value, 100));
  }
  const Cell cell = summary.Summarize().cells(0);
  EXPECT_NEAR(cell.training_seconds().mean(), 3.8083333333333336, 1e-14);
  EXPECT_NEAR(cell.training_seconds().deviation(), 3.6028345322352324, 1e-13);
  EXPECT_NEAR(cell.seen_loss().low(), 0.625, 1e-14);
  EXPECT_NEAR(cell.seen_loss().median(), 2.55, 1e-14);
  EXPECT_NEAR(cell.seen_loss().high(), 8.25, 1e-14);
}

TEST(ExperimentSummaryTest, OneLossIsAllItsQuantiles) {
  ExperimentSummary summary;
  SucceedWithLosses(0, {0}, {4}, summary);
  const Cell cell = summary.Summarize().cells(0);
  EXPECT_EQ(cell.seen_loss().low(), 4);
  EXPECT_EQ(cell.seen_loss().high(), 4);
}

}  // namespace
}  // namespace lengthwise::server
