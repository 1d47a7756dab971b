// From API messages to figures of single trials and of what is wrong with their answers.
#include <map>

#include "client/plotting/accuracy_of_trials.h"
#include "client/plotting/answer_errors.h"
#include "client/plotting/plotted_trials.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;

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
