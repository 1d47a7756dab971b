// Figures of a metric that was asked for, and of accuracies over the steps of training.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/plotting/accuracy_by_length.h"
#include "client/plotting/accuracy_over_steps.h"
#include "client/plotting/loss_figure.h"
#include "client/plotting/plotted_trials.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MetricFiguresTest : public testing::Test {
 protected:
  MetricFiguresTest() { experiments_[0].name = "e-1"; }

  // Trained on lengths, or scales, up to 2.
  v1::Trial& AddTrial(const std::string& task, const std::string& encoding, uint64_t seed,
                      double rate = 0.1) {
    v1::Trial& trial = experiments_[0].trials.emplace_back();
    trial.set_name(
        absl::StrCat("experiments/e-1/trials/", task, "-", encoding, "-", rate, "-", seed));
    v1::TrialSpecification& specification = *trial.mutable_specification();
    specification.mutable_task()->set_name(task);
    specification.mutable_task()->set_label(task);
    specification.mutable_network()->set_name("encoder");
    specification.mutable_encoding()->set_name(encoding);
    specification.mutable_encoding()->set_label(encoding);
    specification.set_learning_rate(rate);
    specification.set_weight_seed(seed);
    specification.mutable_evaluation()->set_seen_up_to(2);
    return trial;
  }

  // Of the trial that was added last, at the lengths 2 and 3: the columns.
  void Evaluate(int64_t step, bool is_final,
                const std::map<std::string, std::vector<double>>& columns) {
    auto& evaluation = *experiments_[0].accuracies.add_evaluations();
    evaluation.set_trial(experiments_[0].trials.back().name());
    evaluation.set_step(step);
    v1::LengthAccuracies& measured = *evaluation.mutable_accuracies();
    measured.set_final(is_final);
    for (const int length : {2, 3}) measured.add_lengths(length);
    for (const auto& [name, values] : columns) {
      if (name == "accuracy") {
        measured.mutable_accuracies()->Add(values.begin(), values.end());
      } else if (name == "loss") {
        measured.mutable_losses()->Add(values.begin(), values.end());
      } else {
        auto& metric = *measured.add_metrics();
        metric.set_name(name);
        metric.mutable_values()->Add(values.begin(), values.end());
      }
    }
  }

  static std::vector<double> Heights(const Series& series) {
    std::vector<double> heights;
    for (const SeriesPoint& point : series.points) heights.push_back(point.y);
    return heights;
  }

  std::vector<PlotExperiment> experiments_{1};
};

using AccuracyByLengthMetricTest = MetricFiguresTest;
using AccuracyOverStepsTest = MetricFiguresTest;
using LossFigureMetricTest = MetricFiguresTest;

TEST_F(AccuracyByLengthMetricTest, OfARegressionIsTheMedianOfTheRateWithTheLowestLoss) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    AddTrial("cumulative_sum", "one_hot", seed, 0.1);
    const double x = 0.25 * static_cast<double>(seed);
    Evaluate(9, true, {{"accuracy", {1, 0}}, {"loss", {0, 2}}, {"rounding_accuracy", {1, x}}});
    AddTrial("cumulative_sum", "one_hot", seed, 0.01);
    Evaluate(9, true, {{"accuracy", {1, 1}}, {"loss", {0, 9}}, {"rounding_accuracy", {1, 1}}});
  }
  const auto figure = AccuracyByLengthFigure(experiments_, "rounding_accuracy");
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_EQ(figure->title, "Rounding accuracy by scale of the numbers: e-1");
  EXPECT_EQ(figure->y.label, "rounding accuracy");
  EXPECT_EQ(figure->y.ticks, Axis::Ticks::kPercent);
  const Series& series = figure->panels.at(0).series.at(0);
  EXPECT_THAT(Heights(series), ElementsAre(1, 0.25));
  EXPECT_DOUBLE_EQ(series.points[1].low, 0.05) << "the 10th percentile of 0, 0.25 and 0.5";
  EXPECT_THAT(figure->caption, HasSubstr("Median over up to 3 seeds."));
  EXPECT_THAT(figure->caption, HasSubstr("the lowest mean error"));

  const auto closeness = AccuracyByLengthFigure(experiments_, "accuracy");
  ASSERT_TRUE(closeness.ok()) << closeness.status();
  EXPECT_EQ(closeness->y.label, "accuracy by closeness");
  EXPECT_THAT(Heights(closeness->panels.at(0).series.at(0)), ElementsAre(1, 0));
}

TEST_F(AccuracyByLengthMetricTest, AnErrorOfATaskWithAccuraciesIsAMean) {
  AddTrial("decimal_addition", "rope", 0);
  Evaluate(9, true, {{"accuracy", {1, 0}}, {"loss", {0.5, 1}}, {"digits_accuracy", {1, 0.5}}});
  AddTrial("decimal_addition", "rope", 1);
  Evaluate(9, true, {{"accuracy", {1, 0}}, {"loss", {1.5, 3}}, {"digits_accuracy", {1, 0.75}}});
  const auto loss = AccuracyByLengthFigure(experiments_, "loss");
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(loss->title, "Cross-entropy by number of digits: e-1");
  EXPECT_EQ(loss->y.ticks, Axis::Ticks::kNumbers);
  EXPECT_THAT(Heights(loss->panels.at(0).series.at(0)), ElementsAre(1, 2));
  const auto digits = AccuracyByLengthFigure(experiments_, "digits_accuracy");
  ASSERT_TRUE(digits.ok()) << digits.status();
  EXPECT_THAT(Heights(digits->panels.at(0).series.at(0)), ElementsAre(1, 0.625));
}

TEST_F(AccuracyByLengthMetricTest, OneThatIsNotThereIsAnsweredWithThoseThatAre) {
  AddTrial("decimal_addition", "rope", 0);
  Evaluate(9, true, {{"accuracy", {1, 0}}, {"loss", {0, 1}}, {"digits_accuracy", {1, 0.5}}});
  EXPECT_EQ(MessageOf(AccuracyByLengthFigure(experiments_, "digit_accuracy")),
            "--metric: no evaluation of e-1 has \"digit_accuracy\"; there are accuracy, loss, "
            "digits_accuracy");
  experiments_[0].accuracies.Clear();
  EXPECT_THAT(MessageOf(AccuracyByLengthFigure(experiments_, "digits_accuracy")),
              HasSubstr("no trial of e-1 has been evaluated in full yet"));
}

// Two seeds that learn length 3 at different steps.
TEST_F(AccuracyOverStepsTest, HasAPanelALengthWithEveryTrialAndTheirMean) {
  for (uint64_t seed = 0; seed < 2; ++seed) {
    AddTrial("decimal_addition", "rope", seed);
    Evaluate(10, false, {{"accuracy", {0.5, 0}}});
    Evaluate(20, false, {{"accuracy", {1, seed == 0 ? 0.0 : 0.5}}});
    Evaluate(30, false, {{"accuracy", {1, 1}}});
    Evaluate(30, true, {{"accuracy", {0, 0}}});
  }
  const auto figure = AccuracyOverStepsFigure(experiments_);
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_EQ(figure->title, "Exact match over training: e-1");
  EXPECT_EQ(figure->x.label, "training step");
  EXPECT_EQ(figure->x.range, std::make_pair(0.0, 30.0));
  ASSERT_EQ(figure->panels.size(), 2u);
  EXPECT_EQ(figure->panels[0].title, "2 digits, seen in training");
  EXPECT_EQ(figure->panels[1].title, "3 digits");
  const std::vector<Series>& series = figure->panels[1].series;
  ASSERT_EQ(series.size(), 3u);
  EXPECT_TRUE(series[0].faint);
  EXPECT_EQ(series[0].name, "") << "not in the legend";
  EXPECT_THAT(Heights(series[0]), ElementsAre(0, 0, 1));
  EXPECT_THAT(Heights(series[1]), ElementsAre(0, 0.5, 1));
  EXPECT_FALSE(series[2].faint);
  EXPECT_EQ(series[2].name, "RoPE");
  EXPECT_THAT(Heights(series[2]), ElementsAre(0, 0.25, 1));
  EXPECT_EQ(series[2].points[1].x, 20);
  EXPECT_EQ(series[2].points[1].high, 0.25) << "the thin lines are the band";
  EXPECT_EQ(series[2].style, series[0].style);
  EXPECT_THAT(figure->caption, HasSubstr("Thick lines: their mean"));
}

TEST_F(AccuracyOverStepsTest, ShowsTheLengthAndTheMetricThatAreAskedFor) {
  AddTrial("decimal_addition", "rope", 0);
  Evaluate(10, false, {{"accuracy", {0.5, 0}}, {"digits_accuracy", {0.75, 0.25}}});
  const auto figure = AccuracyOverStepsFigure(experiments_, "digits_accuracy", 3);
  ASSERT_TRUE(figure.ok()) << figure.status();
  ASSERT_EQ(figure->panels.size(), 1u);
  ASSERT_EQ(figure->panels[0].series.size(), 1u) << "one trial is its own mean";
  EXPECT_THAT(Heights(figure->panels[0].series[0]), ElementsAre(0.25));
  EXPECT_EQ(MessageOf(AccuracyOverStepsFigure(experiments_, "", 7)),
            "no evaluations during training at length 7; there are those at 2, 3");
}

TEST_F(AccuracyOverStepsTest, OfARegressionIsTheMedianOfErrors) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    AddTrial("cumulative_sum", "one_hot", seed);
    const double x = seed == 2 ? 8 : 1;
    Evaluate(10, false, {{"accuracy", {0, 0}}, {"loss", {x, x}}});
  }
  const auto figure = AccuracyOverStepsFigure(experiments_);
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_EQ(figure->panels.at(0).title, "scale 2, seen in training");
  EXPECT_THAT(Heights(figure->panels[0].series.back()), ElementsAre(1));
  EXPECT_EQ(figure->y.label, "mean squared error");
  EXPECT_THAT(figure->caption, HasSubstr("their median"));
}

TEST_F(AccuracyOverStepsTest, NamesTheFieldThatRecordsIt) {
  AddTrial("decimal_addition", "rope", 0);
  Evaluate(10, true, {{"accuracy", {1, 1}}});
  EXPECT_THAT(MessageOf(AccuracyOverStepsFigure(experiments_)),
              HasSubstr("evaluation.every_steps in its specification records them"));
}

TEST_F(LossFigureMetricTest, AccuracyInTrainingIsOfTheRateThatTheLossFigureShows) {
  for (const double rate : {0.1, 0.01}) {
    AddTrial("decimal_addition", "rope", 0, rate);
    auto& curve = *experiments_[0].losses.add_curves();
    curve.set_trial(experiments_[0].trials.back().name());
    for (int step = 1; step <= 2; ++step) {
      curve.mutable_points()->add_steps(step);
      curve.mutable_points()->add_losses(static_cast<float>(rate));
      curve.mutable_points()->add_accuracies(static_cast<float>(rate < 0.1 ? 0.25 * step : 1));
    }
  }
  const auto figure = LossFigure(experiments_, "accuracy");
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_EQ(figure->title, "Accuracy in training: e-1");
  EXPECT_EQ(figure->y.ticks, Axis::Ticks::kPercent);
  EXPECT_THAT(Heights(figure->panels.at(0).series.at(0)), ElementsAre(0.25, 0.5));
  EXPECT_EQ(MessageOf(LossFigure(experiments_, "digits_accuracy")),
            "--metric: training does not record \"digits_accuracy\"; there are loss, accuracy");
}

}  // namespace
}  // namespace lengthwise::client
