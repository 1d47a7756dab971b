#include "worker/training/pace.h"

#include <chrono>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/tiny_trials.h"

namespace lengthwise::worker::training {
namespace {

using std::chrono::milliseconds;

TEST(StepRateTest, IsUnknownForTheFirstSecond) {
  StepRate::TimePoint now{};
  StepRate rate(now);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(rate.CountStep(now += milliseconds(100)));
  EXPECT_EQ(rate.steps_per_second(), 0);
  EXPECT_TRUE(rate.CountStep(now += milliseconds(100)));
  EXPECT_DOUBLE_EQ(rate.steps_per_second(), 10);
}

TEST(StepRateTest, FollowsAChangeOfSpeed) {
  StepRate::TimePoint now{};
  StepRate rate(now);
  EXPECT_TRUE(rate.CountStep(now += milliseconds(1000)));
  EXPECT_DOUBLE_EQ(rate.steps_per_second(), 1);
  EXPECT_TRUE(rate.CountStep(now += milliseconds(2000)));
  EXPECT_DOUBLE_EQ(rate.steps_per_second(), 0.75);
}

TEST(TrainingLeftTest, IsTheRemainingStepsAtTheirRate) {
  v1::Training training;
  training.set_steps(1000);
  const TrainingLeft left = EstimateTrainingLeft(training, 200, 10, 16);
  EXPECT_EQ(left.steps, 800);
  EXPECT_EQ(left.seconds, 50);
}

TEST(TrainingLeftTest, EndsWithTheTimeLimit) {
  v1::Training training;
  training.set_steps(1000);
  training.set_stop_after_seconds(30);
  TrainingLeft left = EstimateTrainingLeft(training, 200, 10, 16);
  EXPECT_EQ(left.steps, 320);
  EXPECT_EQ(left.seconds, 20);
  // The steps end before the time limit.
  left = EstimateTrainingLeft(training, 900, 10, 16);
  EXPECT_EQ(left.steps, 100);
  EXPECT_EQ(left.seconds, 6.25);
  left = EstimateTrainingLeft(training, 200, 31, 16);
  EXPECT_EQ(left.steps, 0);
  EXPECT_EQ(left.seconds, 0);
}

// A block of a transformer encoder has 12 d^2 weights and two products of [T, T] with [T, d].
TEST(WorkTest, GrowsWithWeightsAndAttention) {
  const double tokens = 100, d = 64;
  EXPECT_DOUBLE_EQ(SequenceWork(100, 64),
                   (12 * d * d * tokens + 2 * tokens * tokens * d) / (2 * d));
}

// For reverse_string, which has as many outputs as inputs.
TEST(WorkTest, CountsSequencesOfInputAndOutput) {
  v1::TrialSpecification trial = TinyTrial();
  auto blueprint = MakeBlueprint(trial);
  ASSERT_TRUE(blueprint.ok()) << blueprint.status();
  EXPECT_DOUBLE_EQ(EvaluationWork(*blueprint),
                   16 * (SequenceWork(6, 16) + SequenceWork(12, 16) + SequenceWork(18, 16)));

  trial.mutable_training()->mutable_lengths()->set_min(5);
  trial.mutable_training()->mutable_lengths()->set_max(6);
  blueprint = MakeBlueprint(trial);
  ASSERT_TRUE(blueprint.ok()) << blueprint.status();
  EXPECT_DOUBLE_EQ(MeanStepWork(*blueprint),
                   3 * 8 * (SequenceWork(10, 16) + SequenceWork(12, 16)) / 2);
}

TEST(TrainingTimeTest, SumsStepsOfAnUninterruptedTrial) {
  for (const bool exact : {false, true}) {
    TrainingTime time(exact);
    EXPECT_EQ(time.seconds(), 0);
    time.AddStep(0.25);
    time.AddStep(0.5);
    EXPECT_EQ(time.seconds(), 0.75);
  }
}

TEST(TrainingTimeTest, EarlierStepsDefaultToTheCurrentRate) {
  TrainingTime estimated(false), exact(true);
  for (TrainingTime* time : {&estimated, &exact}) {
    time->Resume(100, 40);
    time->AddStep(0.25);
    time->AddStep(0.75);
  }
  EXPECT_EQ(estimated.seconds(), 1 + 100 * 0.5);
  EXPECT_EQ(exact.seconds(), 41);
}

TEST(TrainingTimeTest, WithoutStepsOnlyTheCheckpointCounts) {
  TrainingTime estimated(false), exact(true);
  estimated.Resume(100, 0);
  exact.Resume(100, 40);
  EXPECT_EQ(estimated.seconds(), 0);
  EXPECT_EQ(exact.seconds(), 40);
}

// Without a time limit, the bytes of a checkpoint must not depend on the clock.
TEST(TrainingTimeTest, CheckpointsCarryOnlyExactSeconds) {
  TrainingTime estimated(false), exact(true);
  estimated.AddStep(2);
  exact.AddStep(2);
  EXPECT_EQ(estimated.seconds_for_checkpoint(), 0);
  EXPECT_EQ(exact.seconds_for_checkpoint(), 2);
}

using ::testing::HasSubstr;

v1::LengthAccuracies Accuracies(const std::vector<std::pair<int32_t, double>>& by_length) {
  v1::LengthAccuracies accuracies;
  for (const auto& [length, accuracy] : by_length) {
    accuracies.add_lengths(length);
    accuracies.add_accuracies(accuracy);
  }
  return accuracies;
}

v1::Training StopAt(double accuracy) {
  v1::Training training;
  training.set_stop_at_accuracy(accuracy);
  return training;
}

v1::Evaluation SeenUpTo40() {
  v1::Evaluation evaluation;
  evaluation.set_seen_up_to(40);
  return evaluation;
}

TEST(StopTargetTest, WithoutTargetsTrainingContinues) {
  EXPECT_EQ(ReachedTime({}, 1e9), "");
  EXPECT_EQ(ReachedAccuracy({}, SeenUpTo40(), Accuracies({{20, 1}, {50, 1}})), "");
}

TEST(StopTargetTest, TimeLimitStopsTraining) {
  v1::Training training;
  training.set_stop_after_seconds(1.5);
  EXPECT_EQ(ReachedTime(training, 1.25), "");
  EXPECT_THAT(ReachedTime(training, 1.5), HasSubstr("1.5 s"));
  EXPECT_THAT(ReachedTime(training, 1.75), HasSubstr("training.stop_after_seconds is 1.5"));
}

TEST(StopTargetTest, AccuracyCountsOnlySeenLengths) {
  EXPECT_EQ(
      ReachedAccuracy(StopAt(0.5), SeenUpTo40(), Accuracies({{20, 0.25}, {40, 0.5}, {80, 1}})), "");
  EXPECT_THAT(
      ReachedAccuracy(StopAt(0.375), SeenUpTo40(), Accuracies({{20, 0.25}, {40, 0.5}, {80, 0}})),
      HasSubstr("over the seen lengths was 0.375"));
  EXPECT_EQ(ReachedAccuracy(StopAt(0.375), SeenUpTo40(), Accuracies({{80, 1}})), "");
}

TEST(StopTargetTest, AccuracyCountsUnseenLengthsOnRequest) {
  v1::Evaluation evaluation = SeenUpTo40();
  evaluation.set_select("unseen");
  EXPECT_EQ(ReachedAccuracy(StopAt(0.5), evaluation, Accuracies({{40, 1}, {41, 0.25}, {80, 0.5}})),
            "");
  EXPECT_THAT(
      ReachedAccuracy(StopAt(0.375), evaluation, Accuracies({{40, 0}, {41, 0.25}, {80, 0.5}})),
      HasSubstr("unseen lengths was 0.375"));
}

}  // namespace
}  // namespace lengthwise::worker::training
