#include "worker/evaluation/answer_tally.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::worker::evaluation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AnswerTallyTest, RecordsEachAnswerOnRequest) {
  AnswerTally tally(3, /*each_answer=*/true);
  tally.Add({.is_exact = true, .has_right_digits = true});
  tally.Add({.is_exact = false, .has_right_digits = true});  // a wrong hint
  tally.Add({.wrong_digits = {0, 2, 3}, .first_wrong_has_carry = false});
  tally.Add({});  // one digit too many
  tally.Add({.wrong_digits = {2}, .first_wrong_has_carry = true});
  const LengthScore score = tally.Score(0.5);
  EXPECT_THAT(score.each_accuracy, ElementsAre(1, 0, 0, 0, 0));
  ASSERT_EQ(score.wrong_answers.size(), 3u);
  EXPECT_EQ(score.wrong_answers[0].sequence(), 2);
  EXPECT_THAT(score.wrong_answers[0].places(), ElementsAre(0, 2, 3));
  EXPECT_FALSE(score.wrong_answers[0].carry_into_first());
  EXPECT_EQ(score.wrong_answers[1].sequence(), 3);
  EXPECT_THAT(score.wrong_answers[1].places(), IsEmpty());
  EXPECT_EQ(score.wrong_answers[2].sequence(), 4);
  EXPECT_TRUE(score.wrong_answers[2].carry_into_first());
  AnswerTally summary(3);
  summary.Add({.wrong_digits = {2}, .first_wrong_has_carry = true});
  EXPECT_THAT(summary.Score(0.5).each_accuracy, IsEmpty());
  EXPECT_TRUE(summary.Score(0.5).wrong_answers.empty());
}

TEST(AnswerTallyTest, CountsRightAnswersAndWrongPlaces) {
  AnswerTally tally(3);
  tally.Add({.is_exact = true, .has_right_digits = true});
  tally.Add({.is_exact = false, .has_right_digits = true});  // a wrong hint
  tally.Add({.wrong_digits = {2}, .first_wrong_has_carry = true});
  tally.Add({.wrong_digits = {0, 2, 3}, .first_wrong_has_carry = false});
  tally.Add({.wrong_digits = {2}, .first_wrong_has_carry = true});
  const LengthScore score = tally.Score(0.5);
  EXPECT_DOUBLE_EQ(score.accuracy, 1.0 / 5);
  EXPECT_DOUBLE_EQ(score.metrics.at("digits_accuracy"), 2.0 / 5);
  EXPECT_EQ(score.loss, 0.5);
  EXPECT_EQ(score.sequences, 5);
  EXPECT_EQ(score.errors->length(), 3);
  EXPECT_EQ(score.errors->answers(), 5);
  EXPECT_THAT(score.errors->wrong_by_place(), ElementsAre(1, 0, 3, 1));
  EXPECT_THAT(score.errors->answers_by_wrong_digits(), ElementsAre(2, 2, 0, 1));
  EXPECT_EQ(score.errors->first_wrong_with_carry(), 2);
  EXPECT_EQ(score.errors->first_wrong_without_carry(), 1);
}

TEST(AnswerTallyTest, PlacesThatAreNeverWrongAreThere) {
  AnswerTally tally(3);
  tally.Add({.has_right_digits = true, .places = 2});
  tally.Add({.wrong_digits = {1}, .places = 4});
  tally.Add({.has_right_digits = true, .places = 3});
  EXPECT_THAT(tally.Score(0.5).errors->wrong_by_place(), ElementsAre(0, 1, 0, 0));
}

TEST(AnswerTallyTest, CountsPlacesByCarryDistance) {
  AnswerTally tally(3);
  const std::vector<int32_t> distances = {0, 1, 2, 0};
  tally.Add({.has_right_digits = true, .carry_distances = distances});
  // Places more significant than the first wrong one do not count.
  tally.Add({.wrong_digits = {1, 3}, .first_wrong_has_carry = true, .carry_distances = distances});
  tally.Add({.wrong_digits = {2}, .first_wrong_has_carry = true, .carry_distances = distances});
  tally.Add({.wrong_digits = {0}, .first_wrong_has_carry = false, .carry_distances = {0, 0}});
  const LengthScore score = tally.Score(0);
  EXPECT_THAT(score.errors->places_by_carry(), ElementsAre(5, 3, 2));
  EXPECT_THAT(score.errors->wrong_by_carry(), ElementsAre(1, 1, 1));
  AnswerTally others(3);
  others.Add({.wrong_digits = {0}});
  EXPECT_THAT(others.Score(0).errors->places_by_carry(), IsEmpty()) << "no sums";
}

TEST(AnswerTallyTest, WithoutAnswersIsZero) {
  const LengthScore score = AnswerTally(3).Score(0);
  EXPECT_EQ(score.accuracy, 0);
  EXPECT_EQ(score.sequences, 0);
  EXPECT_THAT(score.errors->answers_by_wrong_digits(), IsEmpty());
}

}  // namespace
}  // namespace lengthwise::worker::evaluation
