// From API messages to figures of accuracies and losses.
#include <cmath>

#include "client/plotting/accuracy_by_length.h"
#include "client/plotting/accuracy_over_time.h"
#include "client/plotting/length_sweep.h"
#include "client/plotting/loss_figure.h"
#include "client/plotting/plotted_trials.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

TEST(AccuracyByLengthTest, AveragesSeedsOfTheBestRateOnUnseenLengths) {
  PlotExperiment experiment{.name = "e-1"};
  // 0.001 is better on unseen lengths, 0.1 on seen ones.
  Add(experiment, MakeTrial("sin_cos", false, 0.1, 0), {1.0, 1.0, 0.2});
  Add(experiment, MakeTrial("sin_cos", false, 0.001, 0), {0.9, 0.8, 0.4});
  Add(experiment, MakeTrial("sin_cos", false, 0.001, 1), {0.7, 0.6, 0.8});
  const auto figure = AccuracyByLengthFigure({experiment});
  ASSERT_TRUE(figure.ok()) << figure.status();
  ASSERT_EQ(figure->panels.size(), 1u);
  const Panel& panel = figure->panels[0];
  EXPECT_EQ(panel.title, "Bucket Sort");
  ASSERT_EQ(panel.series.size(), 1u);
  EXPECT_EQ(panel.series[0].name, "sin / cos");
  const std::vector<SeriesPoint>& points = panel.series[0].points;
  ASSERT_EQ(points.size(), 3u);
  EXPECT_DOUBLE_EQ(points[2].x, 3);
  EXPECT_DOUBLE_EQ(points[2].y, 0.6);
  EXPECT_DOUBLE_EQ(points[2].low, 0.4);
  EXPECT_DOUBLE_EQ(points[2].high, 0.8);
  EXPECT_EQ(panel.shaded, std::make_pair(1.0, 2.0));
  EXPECT_EQ(figure->shaded_label, "seen in training: lengths 1 to 2");
  ASSERT_EQ(panel.references.size(), 1u);
  EXPECT_DOUBLE_EQ(panel.references[0].y, 0.2);  // five symbols
  EXPECT_THAT(figure->caption, HasSubstr("Mean over up to 2 seeds."));
  EXPECT_THAT(figure->caption, HasSubstr("learning rate with the highest mean accuracy"));
}

TEST(AccuracyByLengthTest, ARandomizedEncodingHasTheColourOfItsPlainOneAndOtherDashes) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, MakeTrial("rope", false, 0.1, 0), {1, 1, 1});
  Add(experiment, MakeTrial("alibi", false, 0.1, 0), {1, 1, 1});
  Add(experiment, MakeTrial("rope", true, 0.1, 0), {1, 1, 1});
  v1::Trial other = MakeTrial("rope", true, 0.1, 0);
  other.mutable_specification()->mutable_encoding()->set_label("randomized_rope_max_position=4096");
  other.set_name("experiments/e-1/trials/4096");
  Add(experiment, other, {1, 1, 1});
  const auto figure = AccuracyByLengthFigure({experiment});
  ASSERT_TRUE(figure.ok());
  const std::vector<Series>& series = figure->panels[0].series;
  ASSERT_EQ(series.size(), 4u);
  EXPECT_EQ(series[0].style.color, series[2].style.color);
  EXPECT_FALSE(series[0].style.dashed);
  EXPECT_TRUE(series[2].style.dashed);
  EXPECT_NE(series[0].style.color, series[1].style.color);
  EXPECT_EQ(series[3].name, "Randomized RoPE max_position=4096");
  for (int i = 0; i < 3; ++i) EXPECT_NE(series[3].style.color, series[i].style.color);
}

TEST(AccuracyByLengthTest, GuessingIsNotDrawnWhereItIsNotKnown) {
  PlotExperiment experiment{.name = "e-1"};
  v1::Trial trial = MakeTrial("none", false, 0.1, 0);
  (*trial.mutable_specification()->mutable_task()->mutable_parameters())["vocabulary"]
      .set_number_value(7);
  Add(experiment, trial, {1, 1, 1});
  const auto figure = AccuracyByLengthFigure({experiment});
  ASSERT_TRUE(figure.ok());
  EXPECT_TRUE(figure->panels[0].references.empty());
}

TEST(AccuracyByLengthTest, SaysWhatIsMissing) {
  PlotExperiment experiment{.name = "e-1"};
  experiment.trials.push_back(MakeTrial("none", false, 0.1, 0));
  EXPECT_THAT(MessageOf(AccuracyByLengthFigure({experiment})),
              HasSubstr("no trial of e-1 has been evaluated in full yet"));
  Add(experiment, MakeTrial("none", false, 0.1, 1), {1, 1, 1});
  EXPECT_THAT(AccuracyByLengthFigure({experiment})->caption,
              HasSubstr("1 of 2 trials has no final evaluation."));
}

TEST(AccuracyByLengthTest, SeveralExperimentsAreToldApart) {
  PlotExperiment a{.name = "a-1"};
  PlotExperiment b{.name = "b-1"};
  Add(a, MakeTrial("none", false, 0.1, 0), {1, 1, 1});
  Add(b, MakeTrial("none", false, 0.1, 0), {1, 1, 1});
  const auto figure = AccuracyByLengthFigure({a, b});
  ASSERT_TRUE(figure.ok());
  ASSERT_EQ(figure->panels.size(), 1u);
  EXPECT_EQ(figure->panels[0].series[0].name, "a-1: None");
  EXPECT_EQ(figure->panels[0].series[1].name, "b-1: None");
  EXPECT_NE(figure->panels[0].series[0].style, figure->panels[0].series[1].style);
}

v1::QueryLossCurvesResponse::Curve Losses(const v1::Trial& trial,
                                          const std::vector<float>& losses) {
  v1::QueryLossCurvesResponse::Curve curve;
  curve.set_trial(trial.name());
  for (size_t i = 0; i < losses.size(); ++i) {
    curve.mutable_points()->add_steps(static_cast<int64_t>(100 * (i + 1)));
    curve.mutable_points()->add_losses(losses[i]);
  }
  return curve;
}

TEST(LossFigureTest, AveragesSeedsAsFarAsAllHaveCome) {
  PlotExperiment experiment{.name = "e-1"};
  experiment.trials = {MakeTrial("none", false, 0.1, 0), MakeTrial("none", false, 0.1, 1)};
  *experiment.losses.add_curves() = Losses(experiment.trials[0], {2, 1, 0.5, 0.25});
  *experiment.losses.add_curves() = Losses(experiment.trials[1], {2, 0.5});
  const auto figure = LossFigure({experiment});
  ASSERT_TRUE(figure.ok());
  const std::vector<SeriesPoint>& points = figure->panels[0].series[0].points;
  ASSERT_EQ(points.size(), 2u);
  EXPECT_DOUBLE_EQ(points[1].x, 200);
  EXPECT_DOUBLE_EQ(points[1].y, 0.75);
  EXPECT_EQ(figure->y.scale, Axis::Scale::kLinear);
  EXPECT_EQ(figure->y.label, "cross-entropy, nats");
}

TEST(LossFigureTest, LossesOverDecadesGetALogarithmicAxisThatHoldsZeros) {
  PlotExperiment experiment{.name = "e-1"};
  experiment.trials = {MakeTrial("none", false, 0.1, 0)};
  *experiment.losses.add_curves() = Losses(experiment.trials[0], {2, 0.1f, 0.0001f, 0});
  const auto figure = LossFigure({experiment});
  ASSERT_TRUE(figure.ok());
  EXPECT_EQ(figure->y.scale, Axis::Scale::kLog10);
  for (const SeriesPoint& point : figure->panels[0].series[0].points) {
    EXPECT_GE(point.y, figure->y.range->first);
    EXPECT_GE(point.low, figure->y.range->first);
  }
}

TEST(LossFigureTest, ManyPointsAreSmoothedWithoutMovingTheirMean) {
  PlotExperiment experiment{.name = "e-1"};
  experiment.trials = {MakeTrial("none", false, 0.1, 0)};
  std::vector<float> zigzag;
  for (int i = 0; i < 100; ++i) zigzag.push_back(i % 2 == 0 ? 1.5f : 0.5f);
  *experiment.losses.add_curves() = Losses(experiment.trials[0], zigzag);
  const auto figure = LossFigure({experiment});
  ASSERT_TRUE(figure.ok());
  const std::vector<SeriesPoint>& points = figure->panels[0].series[0].points;
  ASSERT_EQ(points.size(), 100u);
  EXPECT_DOUBLE_EQ(points[0].y, 1.5);      // nothing before it
  EXPECT_NEAR(points[50].y, 1, 0.5 / 11);  // 11 points: one more of one kind
  EXPECT_THAT(figure->caption, HasSubstr("Running mean over up to 11 recorded points"));
}

TEST(LossFigureTest, WithoutEvaluationsTheLowestLossChoosesTheRate) {
  PlotExperiment experiment{.name = "e-1"};
  experiment.trials = {MakeTrial("none", false, 0.1, 0), MakeTrial("none", false, 0.01, 0)};
  *experiment.losses.add_curves() = Losses(experiment.trials[0], {2, 1});
  *experiment.losses.add_curves() = Losses(experiment.trials[1], {2, 0.5});
  const auto figure = LossFigure({experiment});
  ASSERT_TRUE(figure.ok());
  EXPECT_DOUBLE_EQ(figure->panels[0].series[0].points[1].y, 0.5);
  experiment.losses.Clear();
  EXPECT_THAT(MessageOf(LossFigure({experiment})), HasSubstr("training.report_every_steps"));
}

TEST(AccuracyOverTimeTest, PutsMeansOfSeedsAtTheMeanTime) {
  PlotExperiment experiment{.name = "e-1"};
  experiment.trials = {MakeTrial("none", false, 0.1, 0), MakeTrial("none", false, 0.1, 1)};
  AddInterval(experiment, experiment.trials[0], 10, 1, 0.2);
  AddInterval(experiment, experiment.trials[0], 20, 2, 0.4);
  AddInterval(experiment, experiment.trials[1], 10, 3, 0.6);
  AddInterval(experiment, experiment.trials[1], 20, 4, 0.8);
  const auto figure = AccuracyOverTimeFigure({experiment});
  ASSERT_TRUE(figure.ok()) << figure.status();
  const std::vector<SeriesPoint>& points = figure->panels[0].series[0].points;
  ASSERT_EQ(points.size(), 2u);
  EXPECT_DOUBLE_EQ(points[0].x, 2);
  EXPECT_DOUBLE_EQ(points[0].y, 0.4);
  EXPECT_DOUBLE_EQ(points[1].x, 3);
  EXPECT_DOUBLE_EQ(points[1].high, 0.8);
  EXPECT_EQ(figure->x.label, "training time (wall clock, seconds)");
}

TEST(AccuracyOverTimeTest, LongTimesAreInHours) {
  PlotExperiment experiment{.name = "e-1"};
  experiment.trials = {MakeTrial("none", false, 0.1, 0)};
  AddInterval(experiment, experiment.trials[0], 10, 36'000, 0.2);
  const auto figure = AccuracyOverTimeFigure({experiment});
  ASSERT_TRUE(figure.ok());
  EXPECT_DOUBLE_EQ(figure->panels[0].series[0].points[0].x, 10);
  EXPECT_EQ(figure->x.label, "training time (wall clock, hours)");
}

TEST(AccuracyOverTimeTest, NamesTheFieldThatRecordsIt) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, MakeTrial("none", false, 0.1, 0), {1, 1, 1});
  EXPECT_THAT(MessageOf(AccuracyOverTimeFigure({experiment})),
              HasSubstr("evaluation.every_steps in its specification records them"));
  AddInterval(experiment, experiment.trials[0], 10, 0, 0.2);
  EXPECT_THAT(MessageOf(AccuracyOverTimeFigure({experiment})), HasSubstr("how long training"));
  experiment.trials[0].mutable_specification()->mutable_evaluation()->set_seen_up_to(100);
  EXPECT_THAT(MessageOf(AccuracyOverTimeFigure({experiment})), HasSubstr("seen_up_to"));
}

v1::Trial SweepTrial(int max_position, uint64_t seed) {
  v1::Trial trial = MakeTrial("relative", true, 0.1, seed);
  v1::Component& encoding = *trial.mutable_specification()->mutable_encoding();
  (*encoding.mutable_parameters())["max_position"].set_number_value(max_position);
  encoding.set_label(absl::StrCat("relative_", max_position));
  trial.set_name(absl::StrCat(trial.name(), "-", max_position));
  return trial;
}

TEST(LengthSweepTest, DrawsTheHighestAndAllTrialsBehind) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, SweepTrial(2048, 0), {1, 1, 0.5});
  Add(experiment, SweepTrial(2048, 1), {1, 1, 0.7});
  Add(experiment, SweepTrial(1024, 0), {1, 1, 0.9});
  Add(experiment, SweepTrial(1024, 1), {1, 1, 0.6});
  // It draws no positions: nothing of it belongs here.
  Add(experiment, MakeTrial("relative", false, 0.1, 0), {1, 1, 1});
  const auto figure = LengthSweepFigure({experiment}, "");
  ASSERT_TRUE(figure.ok()) << figure.status();
  ASSERT_EQ(figure->panels.size(), 1u);
  const std::vector<Series>& series = figure->panels[0].series;
  ASSERT_EQ(series.size(), 2u);
  EXPECT_TRUE(series[0].faint);
  EXPECT_EQ(series[0].points.size(), 4u);
  EXPECT_EQ(series[1].name, "Bucket Sort");
  ASSERT_EQ(series[1].points.size(), 2u);
  EXPECT_DOUBLE_EQ(series[1].points[0].x, 1024);
  EXPECT_DOUBLE_EQ(series[1].points[0].y, 0.9);
  EXPECT_DOUBLE_EQ(series[1].points[1].y, 0.7);
  EXPECT_EQ(figure->x.scale, Axis::Scale::kLog2);
}

TEST(LengthSweepTest, SaysWhatASweepIs) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, SweepTrial(2048, 0), {1, 1, 0.5});
  EXPECT_THAT(MessageOf(LengthSweepFigure({experiment}, "")), HasSubstr("encodings: [{name:"));
  EXPECT_THAT(MessageOf(LengthSweepFigure({experiment}, "slope")),
              HasSubstr("do not differ in slope"));
}

}  // namespace
}  // namespace lengthwise::client
