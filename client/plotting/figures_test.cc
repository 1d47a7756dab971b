// From API messages to figures.
#include <cmath>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/plotting/accuracy_by_length.h"
#include "client/plotting/accuracy_of_trials.h"
#include "client/plotting/accuracy_over_time.h"
#include "client/plotting/answer_errors.h"
#include "client/plotting/attention_figure.h"
#include "client/plotting/length_sweep.h"
#include "client/plotting/loss_figure.h"
#include "client/plotting/projection_figure.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string MessageOf(const absl::StatusOr<Figure>& figure) {
  return std::string(figure.status().message());
}

// A trial of bucket sort, trained on lengths 1 to 2.
v1::Trial MakeTrial(const std::string& encoding, bool randomized, double rate, uint64_t seed) {
  v1::Trial trial;
  v1::TrialSpecification& specification = *trial.mutable_specification();
  specification.mutable_task()->set_name("bucket_sort");
  specification.mutable_task()->set_label("bucket_sort");
  specification.mutable_network()->set_name("encoder");
  specification.mutable_encoding()->set_name(encoding);
  specification.mutable_encoding()->set_label(randomized ? "randomized_" + encoding : encoding);
  (*specification.mutable_encoding()->mutable_parameters())["randomized"].set_bool_value(
      randomized);
  specification.set_learning_rate(rate);
  specification.set_weight_seed(seed);
  specification.mutable_training()->mutable_lengths()->set_min(1);
  specification.mutable_training()->mutable_lengths()->set_max(2);
  specification.mutable_evaluation()->set_seen_up_to(2);
  trial.set_name(absl::StrCat("experiments/e-1/trials/", specification.encoding().label(), "-lr",
                              rate, "-seed", seed));
  return trial;
}

// Adds a trial with accuracies at the lengths 1, 2, 3, ...
void Add(PlotExperiment& experiment, const v1::Trial& trial,
         const std::vector<double>& accuracies) {
  experiment.trials.push_back(trial);
  auto& evaluation = *experiment.accuracies.add_evaluations();
  evaluation.set_trial(trial.name());
  evaluation.mutable_accuracies()->set_final(true);
  for (size_t i = 0; i < accuracies.size(); ++i) {
    evaluation.mutable_accuracies()->add_lengths(static_cast<int>(i) + 1);
    evaluation.mutable_accuracies()->add_accuracies(accuracies[i]);
  }
}

void AddInterval(PlotExperiment& experiment, const v1::Trial& trial, int64_t step, double seconds,
                 double unseen) {
  auto& evaluation = *experiment.accuracies.add_evaluations();
  evaluation.set_trial(trial.name());
  evaluation.set_step(step);
  evaluation.mutable_accuracies()->set_training_seconds(seconds);
  for (const auto& [length, accuracy] : {std::make_pair(2, 1.0), std::make_pair(4, unseen)}) {
    evaluation.mutable_accuracies()->add_lengths(length);
    evaluation.mutable_accuracies()->add_accuracies(accuracy);
  }
}

template <typename Message>
std::string Floats(const std::vector<float>& values, Message&& set) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  set(bytes);
  return bytes;
}

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
              HasSubstr("1 of 2 trials have no final evaluation."));
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

// Two layers of two heads over an input token and an output place.
v1::AttentionMap MakeMap() {
  v1::AttentionMap map;
  map.set_length(1);
  map.add_tokens(3);
  map.add_tokens(5);
  map.set_layers(2);
  map.set_heads(2);
  Floats({0.1f, 0.9f, 0.2f, 0.8f, /**/ 0.4f, 0.6f, 0.1f, 0.9f,  //
          0.5f, 0.5f, 0.5f, 0.5f, /**/ 1.0f, 0.0f, 0.0f, 1.0f},
         [&](const std::string& bytes) { map.set_probabilities(bytes); });
  return map;
}

class AttentionFigureTest : public testing::Test {
 protected:
  AttentionFigureTest() {
    for (const uint64_t seed : {0, 1}) {
      v1::Trial trial = MakeTrial("none", false, 0.1, seed);
      trial.mutable_specification()->mutable_evaluation()->add_attention_lengths(1);
      Add(experiments_[0], trial, {1, 1, seed == 0 ? 0.3 : 0.6});
    }
  }
  void AddMap(int trial) {
    experiments_[0].attention_maps[experiments_[0].trials[trial].name()] = {MakeMap()};
  }

  std::vector<PlotExperiment> experiments_ = {{.name = "e-1"}};
};

TEST_F(AttentionFigureTest, ShowsTheMaximumOverHeadsOfEachLayerOfTheBestTrial) {
  const auto trials = TrialsWithAttention(experiments_);
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0]->specification().weight_seed(), 1u);
  AddMap(1);
  const auto figure = AttentionFigure(experiments_, {});
  ASSERT_TRUE(figure.ok()) << figure.status();
  ASSERT_EQ(figure->panels.size(), 2u);
  EXPECT_EQ(figure->columns, 2);
  EXPECT_THAT(figure->panels[0].map->values, ElementsAre(0.4f, 0.9f, 0.2f, 0.9f));
  EXPECT_THAT(figure->panels[1].map->values, ElementsAre(1.0f, 0.5f, 0.5f, 1.0f));
  EXPECT_EQ(figure->panels[0].map->first_output, 1);
  EXPECT_EQ(figure->panels[1].title, "layer 2");
  EXPECT_THAT(figure->row_titles, ElementsAre("None\nlength 1"));
}

TEST_F(AttentionFigureTest, ShowsOneHeadOrTheHeadsOfOneLayer) {
  AddMap(1);
  auto figure = AttentionFigure(experiments_, {.head = 2});
  ASSERT_TRUE(figure.ok());
  EXPECT_THAT(figure->panels[0].map->values, ElementsAre(0.4f, 0.6f, 0.1f, 0.9f));
  figure = AttentionFigure(experiments_, {.layer = 1});
  ASSERT_TRUE(figure.ok());
  EXPECT_EQ(figure->panels[0].title, "head 1");
  EXPECT_THAT(figure->panels[0].map->values, ElementsAre(0.1f, 0.9f, 0.2f, 0.8f));
  figure = AttentionFigure(experiments_, {.layer = 2, .head = 1});
  ASSERT_TRUE(figure.ok());
  ASSERT_EQ(figure->panels.size(), 1u);
  EXPECT_THAT(figure->panels[0].map->values, ElementsAre(0.5f, 0.5f, 0.5f, 0.5f));
}

TEST_F(AttentionFigureTest, LongMapsKeepTheLargestValueOfEachCell) {
  v1::AttentionMap map;
  map.set_length(300);
  map.set_layers(1);
  map.set_heads(1);
  for (int i = 0; i < 301; ++i) map.add_tokens(i < 300 ? 0 : 2);
  std::vector<float> values(301 * 301, 0.0f);
  values[299 * 301 + 7] = 0.75f;
  Floats(values, [&](const std::string& bytes) { map.set_probabilities(bytes); });
  experiments_[0].attention_maps[experiments_[0].trials[1].name()] = {map};
  const auto figure = AttentionFigure(experiments_, {});
  ASSERT_TRUE(figure.ok());
  const HeatMap& heat = *figure->panels[0].map;
  EXPECT_EQ(heat.tokens_per_cell, 2);
  EXPECT_EQ(heat.size, 151);
  EXPECT_FLOAT_EQ(heat.values[149 * 151 + 3], 0.75f);
  EXPECT_THAT(figure->caption, HasSubstr("the largest value of up to 2 x 2 tokens"));
}

TEST_F(AttentionFigureTest, SaysWhatIsWrong) {
  EXPECT_THAT(MessageOf(AttentionFigure(experiments_, {})),
              HasSubstr("has recorded attention yet"));
  AddMap(1);
  EXPECT_THAT(MessageOf(AttentionFigure(experiments_, {.layer = 3})),
              HasSubstr("there is no layer 3: these networks have 2"));
  EXPECT_THAT(MessageOf(AttentionFigure(experiments_, {.head = 9})), HasSubstr("no head 9"));
  EXPECT_THAT(MessageOf(AttentionFigure(experiments_, {.length = 7})),
              HasSubstr("no attention maps of length 7; recorded: 1"));
  experiments_[0].attention_maps.begin()->second[0].set_heads(3);
  EXPECT_THAT(MessageOf(AttentionFigure(experiments_, {})), HasSubstr("bytes where its shape has"));
  for (v1::Trial& trial : experiments_[0].trials) {
    trial.mutable_specification()->mutable_evaluation()->clear_attention_lengths();
  }
  EXPECT_THAT(MessageOf(AttentionFigure(experiments_, {})),
              HasSubstr("evaluation.attention_lengths in its specification"));
}

v1::Projection MakeProjection(int length, int sequences) {
  v1::Projection projection;
  projection.set_fitted_length(2);
  projection.set_length(length);
  projection.set_sequences(sequences);
  projection.set_tokens(length);
  projection.set_depths(2);
  std::vector<float> values;
  for (int i = 0; i < 2 * 2 * sequences * length; ++i) values.push_back(static_cast<float>(i));
  Floats(values, [&](const std::string& bytes) { projection.set_coordinates(bytes); });
  for (const double share : {0.5, 0.25, 0.75, 0.125}) projection.add_explained_variance(share);
  return projection;
}

TEST(ProjectionFigureTest, HasAPanelADepthAndTheFittedLengthOnTop) {
  PlotExperiment experiment{.name = "e-1"};
  v1::Trial trial = MakeTrial("none", false, 0.1, 0);
  trial.mutable_specification()->mutable_evaluation()->mutable_projection();
  Add(experiment, trial, {1, 1, 1});
  EXPECT_THAT(MessageOf(ProjectionFigure({experiment})), HasSubstr("recorded projections yet"));
  experiment.projections[trial.name()] = {MakeProjection(2, 3), MakeProjection(4, 1)};
  const auto figure = ProjectionFigure({experiment});
  ASSERT_TRUE(figure.ok()) << figure.status();
  ASSERT_EQ(figure->panels.size(), 2u);
  EXPECT_EQ(figure->panels[0].title, "embedding (50 + 25 %)");
  EXPECT_EQ(figure->panels[1].title, "after block 1 (75 + 12 %)");
  const std::vector<Series>& series = figure->panels[1].series;
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].name, "length 4");
  EXPECT_EQ(series[1].name, "length 2, on which the components were fitted");
  EXPECT_EQ(series[1].style.color, 0);  // blue
  // [depths, sequences, tokens, 2]: the second depth begins at 12.
  ASSERT_EQ(series[1].points.size(), 6u);
  EXPECT_EQ(series[1].points[1].x, 14);
  EXPECT_EQ(series[1].points[1].y, 15);
}

TEST(ProjectionFigureTest, DrawsWholeSequencesUpToAnAmountThatCanBeRead) {
  PlotExperiment experiment{.name = "e-1"};
  v1::Trial trial = MakeTrial("none", false, 0.1, 0);
  trial.mutable_specification()->mutable_evaluation()->mutable_projection();
  Add(experiment, trial, {1, 1, 1});
  experiment.projections[trial.name()] = {MakeProjection(150, 30)};
  const auto figure = ProjectionFigure({experiment});
  ASSERT_TRUE(figure.ok());
  EXPECT_EQ(figure->panels[0].series[0].points.size(), 1500u);
  EXPECT_THAT(figure->caption, HasSubstr("up to 1500 tokens"));
}

TEST(ProjectionFigureTest, NamesTheFieldThatRecordsThem) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, MakeTrial("none", false, 0.1, 0), {1, 1, 1});
  EXPECT_THAT(MessageOf(ProjectionFigure({experiment})),
              HasSubstr("evaluation.projection in its specification"));
}

v1::Trial Addition(uint64_t weight_seed, uint64_t data_seed) {
  v1::Trial trial = MakeTrial("fire", false, 0.1, weight_seed);
  trial.mutable_specification()->mutable_task()->set_name("decimal_addition");
  trial.mutable_specification()->mutable_task()->set_label("decimal_addition");
  trial.mutable_specification()->set_data_seed(data_seed);
  trial.set_name(absl::StrCat(trial.name(), "-data", data_seed));
  return trial;
}

TEST(AccuracyOfTrialsTest, HasALineATrialAndSaysWhatEachKindOfSeedMakesOfTheSpread) {
  PlotExperiment experiment{.name = "e-1"};
  // Of the length not seen: means 0.9 and 0.3 by weight seed, 0.1 and 0.2 around them by data seed.
  Add(experiment, Addition(4, 0), {1, 1, 0.8});
  Add(experiment, Addition(4, 1), {1, 1, 1.0});
  Add(experiment, Addition(7, 0), {1, 1, 0.1});
  Add(experiment, Addition(7, 1), {1, 1, 0.5});
  const auto figure = AccuracyOfTrialsFigure({experiment});
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_EQ(figure->title, "Every trial's exact match by number of digits: e-1");
  EXPECT_EQ(figure->y.label, "exact match");
  ASSERT_EQ(figure->panels.size(), 1u);
  const std::vector<Series>& series = figure->panels[0].series;
  ASSERT_EQ(series.size(), 5u);
  std::map<std::string, int> faint;
  for (const Series& line : series) {
    ASSERT_EQ(line.points.size(), 3u);
    if (line.faint) {
      ++faint[line.name];
    } else {
      EXPECT_EQ(line.name, "the best");
      EXPECT_EQ(line.points[2].y, 1.0);
    }
  }
  EXPECT_EQ(faint, (std::map<std::string, int>{{"weight seed 4", 2}, {"weight seed 7", 2}}));
  // sqrt((0.1^2 + 0.2^2) / 2) = 0.158
  EXPECT_THAT(figure->caption,
              HasSubstr("FIRE: 30.0 points between weight seeds, 15.8 between data seeds"));
}

TEST(AccuracyOfTrialsTest, SeedsThatGoTogetherHaveOneColour) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, Addition(0, 0), {1, 1, 0.8});
  Add(experiment, Addition(1, 0), {1, 1, 0.2});
  const auto figure = AccuracyOfTrialsFigure({experiment});
  ASSERT_TRUE(figure.ok()) << figure.status();
  EXPECT_EQ(figure->caption.find("weight"), std::string::npos) << figure->caption;
  EXPECT_FALSE(AccuracyOfTrialsFigure({PlotExperiment{.name = "e-1"}}).ok());
}

void AddErrors(PlotExperiment& experiment, const v1::Trial& trial, int32_t size,
               const std::vector<int32_t>& by_place, const std::vector<int32_t>& by_wrong_digits,
               int32_t with_carry, int32_t without_carry) {
  v1::Event event;
  event.set_trial(trial.name());
  v1::AnswerErrors& errors = *event.mutable_answer_errors();
  errors.set_length(size);
  errors.set_answers(10);
  for (const int32_t count : by_place) errors.add_wrong_by_place(count);
  for (const int32_t count : by_wrong_digits) errors.add_answers_by_wrong_digits(count);
  errors.set_first_wrong_with_carry(with_carry);
  errors.set_first_wrong_without_carry(without_carry);
  experiment.analyses.push_back(event);
}

TEST(AnswerErrorsTest, AreOfTheLongestSizeAndAllSeedsTogether) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, Addition(0, 0), {1, 1, 0.8});
  Add(experiment, Addition(1, 0), {1, 1, 0.4});
  const auto& trials = experiment.trials;
  AddErrors(experiment, trials[0], 2, {9, 9}, {0, 1, 9}, 10, 0);
  AddErrors(experiment, trials[0], 3, {0, 1, 1}, {8, 2}, 1, 1);
  AddErrors(experiment, trials[1], 3, {2, 2, 4}, {4, 4, 2}, 5, 1);
  const auto places = ErrorPlacesFigure({experiment});
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(places->title, "Where digits are wrong at 3 digits: e-1");
  const auto& by_place = places->panels.at(0).series.at(0).points;
  ASSERT_EQ(by_place.size(), 3u);
  EXPECT_EQ(by_place[0].x, 0);
  EXPECT_DOUBLE_EQ(by_place[0].y, 2.0 / 20);
  EXPECT_DOUBLE_EQ(by_place[2].y, 5.0 / 20);
  EXPECT_THAT(places->caption, HasSubstr("75 % (Decimal Addition, FIRE)"));
  const auto counts = ErrorCountsFigure({experiment});
  ASSERT_TRUE(counts.ok()) << counts.status();
  const auto& by_count = counts->panels.at(0).series.at(0).points;
  ASSERT_EQ(by_count.size(), 2u);
  EXPECT_EQ(by_count[0].x, 1);
  EXPECT_DOUBLE_EQ(by_count[0].y, 6.0 / 8);
  EXPECT_DOUBLE_EQ(by_count[1].y, 2.0 / 8);
}

TEST(AnswerErrorsTest, AreOfTheSizeThatIsAskedFor) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, Addition(0, 0), {1, 1, 0.8});
  AddErrors(experiment, experiment.trials[0], 2, {9, 6}, {0, 5, 5}, 10, 0);
  AddErrors(experiment, experiment.trials[0], 3, {0, 1, 1}, {8, 2}, 1, 1);
  const auto places = ErrorPlacesFigure({experiment}, 2);
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(places->title, "Where digits are wrong at 2 digits: e-1");
  EXPECT_DOUBLE_EQ(places->panels.at(0).series.at(0).points.at(1).y, 0.6);
  EXPECT_EQ(ErrorCountsFigure({experiment}, 2)->panels.at(0).series.at(0).points.size(), 2u);
  EXPECT_THAT(MessageOf(ErrorCountsFigure({experiment}, 7)),
              HasSubstr("no answers at 7 digits are recorded; there are those at 2, 3 digits"));
}

TEST(AnswerErrorsTest, AreMissedWhereThereAreNone) {
  PlotExperiment experiment{.name = "e-1"};
  Add(experiment, Addition(0, 0), {1, 1, 0.8});
  EXPECT_THAT(MessageOf(ErrorPlacesFigure({experiment})),
              HasSubstr("no trial of e-1 has recorded what is wrong with its answers"));
}

}  // namespace
}  // namespace lengthwise::client
