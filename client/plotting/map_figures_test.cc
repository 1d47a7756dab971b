// From API messages to figures of attention and of activations.
#include <cstring>

#include "client/plotting/attention_figure.h"
#include "client/plotting/plotted_trials.h"
#include "client/plotting/projection_figure.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Message>
std::string Floats(const std::vector<float>& values, Message&& set) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  set(bytes);
  return bytes;
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

}  // namespace
}  // namespace lengthwise::client
