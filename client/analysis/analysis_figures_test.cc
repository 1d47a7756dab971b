#include "client/analysis/analysis_figures.h"

#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/analysis/trial_sets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

class AnalysisFiguresTest : public testing::Test {
 protected:
  // Two models of "small", one of "large" and one of "ground", with final accuracies.
  AnalysisFiguresTest() {
    PlotExperiment& experiment = experiments_.emplace_back();
    experiment.name = "e-1";
    Add(experiment, "small", 1, 0.9);
    Add(experiment, "small", 2, 0.7);
    Add(experiment, "large", 1, 0.3);
    Add(experiment, "ground", 1, 1.0);
    sets_ = SetsOfTrials(experiments_);
  }

  static void Add(PlotExperiment& experiment, const std::string& encoding, uint64_t seed,
                  double accuracy) {
    v1::Trial& trial = experiment.trials.emplace_back();
    trial.set_name("experiments/e-1/trials/" + encoding + std::to_string(seed));
    trial.set_state(v1::SUCCEEDED);
    v1::TrialSpecification& specification = *trial.mutable_specification();
    specification.mutable_task()->set_name("latin_square");
    specification.mutable_encoding()->set_name("learned");
    specification.mutable_encoding()->set_label(encoding);
    specification.set_weight_seed(seed);
    auto& evaluation = *experiment.accuracies.add_evaluations();
    evaluation.set_trial(trial.name());
    evaluation.mutable_accuracies()->set_final(true);
    evaluation.mutable_accuracies()->add_lengths(1);
    evaluation.mutable_accuracies()->add_accuracies(accuracy);
  }

  std::vector<PlotExperiment> experiments_;
  std::vector<TrialSet> sets_;
};

TEST_F(AnalysisFiguresTest, NoiseIsALineForEachEncodingWithABand) {
  const Figure figure =
      NoiseFigure({{.set = &sets_[0], .accuracies = {{0, {0.9, 0.7}}, {0.1, {0.5, 0.4}}}},
                   {.set = &sets_[1], .accuracies = {{0, {0.3}}, {0.1, {0.3}}}}},
                  experiments_);
  ASSERT_EQ(figure.panels.size(), 1);
  const std::vector<Series>& series = figure.panels[0].series;
  ASSERT_EQ(series.size(), 2);
  EXPECT_EQ(series[0].name, "small");
  ASSERT_EQ(series[0].points.size(), 2);
  EXPECT_EQ(series[0].points[1].x, 0.1);
  EXPECT_DOUBLE_EQ(series[0].points[1].y, 0.45);
  EXPECT_EQ(series[0].points[1].low, 0.4);
  EXPECT_EQ(series[0].points[1].high, 0.5);
  EXPECT_FALSE(series[0].style == series[1].style);
  EXPECT_EQ(figure.panels[0].title, "Latin Square Task");
  ASSERT_EQ(figure.panels[0].references.size(), 1);
  EXPECT_EQ(figure.panels[0].references[0].y, 0.25) << "four symbols to guess from";
  EXPECT_THAT(figure.caption, HasSubstr("up to 2 models"));
}

TEST_F(AnalysisFiguresTest, OnlyTheBestLearningRateIsDrawn) {
  // Of "small", rates with means 0.8 (there already) and 0.95; of "large", 0.3 and 0.1.
  for (const auto& [encoding, seed, accuracy] :
       {std::tuple("small", 3, 0.95), std::tuple("large", 2, 0.1)}) {
    Add(experiments_[0], encoding, seed, accuracy);
    experiments_[0].trials.back().mutable_specification()->set_learning_rate(0.01);
  }
  sets_ = SetsOfTrials(experiments_);
  ASSERT_EQ(sets_.size(), 5);
  std::vector<NoiseCurve> curves;
  AttentionComparison comparison{.sequences = 4, .layers = 2};
  for (size_t i = 0; i < sets_.size(); ++i) {
    const double mark = static_cast<double>(i);
    curves.push_back({.set = &sets_[i], .accuracies = {{0, {mark}}}});
    comparison.rows.push_back({.set = &sets_[i], .means = {{sets_[i].trials[0], mark}}});
  }
  const Figure noise = NoiseFigure(curves, experiments_);
  const Figure similarity = AttentionSimilarityFigure(comparison, "ground", experiments_);
  std::vector<std::string> drawn, compared;
  for (const Series& series : noise.panels.at(0).series) {
    drawn.push_back(absl::StrCat(series.name, " ", series.points[0].y));
  }
  for (const Series& series : similarity.panels.at(0).series) {
    compared.push_back(absl::StrCat(series.name, " ", series.points[0].x));
  }
  // In the order of the sets: small, large and ground at the first rate, then small and large at
  // the second.
  EXPECT_THAT(drawn, testing::ElementsAre("large 1", "ground 2", "small 3"));
  EXPECT_THAT(compared, testing::ElementsAre("large 1", "small 3"));
  for (const Figure* figure : {&noise, &similarity}) {
    EXPECT_THAT(figure->caption, HasSubstr("Each encoding has the learning rate with the highest"));
  }
}

TEST_F(AnalysisFiguresTest, TwelveSeriesLookDifferent) {
  std::vector<NoiseCurve> curves;
  for (int i = 0; i < 12; ++i) Add(experiments_[0], absl::StrCat("learn_", i), 1, 0.5);
  sets_ = SetsOfTrials(experiments_);
  for (const TrialSet& set : sets_) curves.push_back({.set = &set, .accuracies = {{0, {0.5}}}});
  const Figure figure = NoiseFigure(curves, experiments_);
  const std::vector<Series>& series = figure.panels.at(0).series;
  ASSERT_GE(series.size(), 12);
  std::set<std::pair<int, bool>> looks;
  for (const Series& one : series) {
    looks.insert({one.style.color % kSeriesColors, one.style.dashed});
  }
  EXPECT_EQ(looks.size(), std::min<size_t>(series.size(), 2 * kSeriesColors));
}

TEST_F(AnalysisFiguresTest, DistancesAreAPointForEachModel) {
  EncodingDistances distances;
  distances.models = {{.set = &sets_[0], .trial = sets_[0].trials[0], .blocks = {1, 9}},
                      {.set = &sets_[0], .trial = sets_[0].trials[1], .blocks = {2, 9}},
                      {.set = &sets_[1], .trial = sets_[1].trials[0], .blocks = {5, 9}}};
  const Figure figure = EncodingDistanceFigure(distances, "2d_fixed", experiments_);
  const std::vector<Series>& series = figure.panels.at(0).series;
  ASSERT_EQ(series.size(), 2);
  EXPECT_EQ(series[0].kind, Series::Kind::kScatter);
  ASSERT_EQ(series[0].points.size(), 2);
  EXPECT_EQ(series[0].points[1].x, 2);
  EXPECT_EQ(series[0].points[1].y, 0.7);
  EXPECT_EQ(series[1].points[0].x, 5);
  EXPECT_THAT(figure.x.label, HasSubstr("2d_fixed"));
  ASSERT_TRUE(figure.x.range.has_value());
  EXPECT_DOUBLE_EQ(figure.x.range->first, 0.8) << "a twentieth beyond the points";
  EXPECT_DOUBLE_EQ(figure.x.range->second, 5.2);
}

TEST_F(AnalysisFiguresTest, TheGroundTruthStandsBeforeTheLayersOfEachEncoding) {
  std::vector<GroundTruthAttention> rows;
  for (const size_t set : {0, 1}) {
    GroundTruthAttention& row = rows.emplace_back();
    row.set = &sets_[set];
    row.models = 2;
    row.cells = 2;
    row.truth = {0, 1, 0, 0};
    row.layers = {{0.5, 0.5, 0, 0}, {0.25, 0.75, 0, 0}};
    row.all = {.puzzles = 3, .even = 0.5, .by_layer = {{0.5, 0.5}, {1, 0.5}}};
  }
  const auto figure = GroundTruthFigure(rows, experiments_);
  ASSERT_TRUE(figure.ok()) << figure.status();
  ASSERT_EQ(figure->panels.size(), 6);
  EXPECT_EQ(figure->columns, 3);
  EXPECT_THAT(figure->row_titles, testing::ElementsAre("small", "large"));
  EXPECT_EQ(figure->panels[3].title, "ground truth (even: 50.0 %)");
  EXPECT_THAT(figure->panels[3].map->values, testing::ElementsAre(0, 1, 0, 0));
  EXPECT_EQ(figure->panels[5].title, "layer 2: 75.0 %") << "the mean over the models";
  EXPECT_EQ(figure->panels[5].map->values[1], 0.75F);
  EXPECT_EQ(figure->map_maximum, 1);
  EXPECT_THAT(figure->caption, HasSubstr("the mean over 3 puzzles and the models"));
  rows[1].layers.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(GroundTruthFigure(rows, experiments_).status()));
  rows.resize(13, rows[0]);
  EXPECT_TRUE(absl::IsInvalidArgument(GroundTruthFigure(rows, experiments_).status()));
}

TEST_F(AnalysisFiguresTest, TheReferenceIsNotComparedWithItselfInThePicture) {
  AttentionComparison comparison{.sequences = 108, .layers = 4};
  for (const TrialSet& set : sets_) {
    AttentionSimilarity& row = comparison.rows.emplace_back();
    row.set = &set;
    for (const v1::Trial* trial : set.trials) row.means.emplace_back(trial, 0.8);
  }
  const Figure figure = AttentionSimilarityFigure(comparison, "ground", experiments_);
  const std::vector<Series>& series = figure.panels.at(0).series;
  ASSERT_EQ(series.size(), 2);
  EXPECT_EQ(series[0].points.size(), 2);
  EXPECT_EQ(series[1].name, "large");
  EXPECT_EQ(series[1].points[0].x, 0.8);
  EXPECT_EQ(series[1].points[0].y, 0.3);
}

}  // namespace
}  // namespace lengthwise::client
