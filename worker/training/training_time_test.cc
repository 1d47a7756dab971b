#include "worker/training/training_time.h"

#include "gtest/gtest.h"

namespace lengthwise::worker::training {
namespace {

TEST(TrainingTimeTest, SumsTheStepsOfAnUndisturbedTrial) {
  for (const bool exact : {false, true}) {
    TrainingTime time(exact);
    EXPECT_EQ(time.seconds(), 0);
    time.AddStep(0.25);
    time.AddStep(0.5);
    EXPECT_EQ(time.seconds(), 0.75);
  }
}

TEST(TrainingTimeTest, EarlierStepsWereAsFastAsTheseUnlessTheCheckpointKnows) {
  TrainingTime estimated(false), exact(true);
  for (TrainingTime* time : {&estimated, &exact}) {
    time->Resume(100, 40);
    time->AddStep(0.25);
    time->AddStep(0.75);
  }
  EXPECT_EQ(estimated.seconds(), 1 + 100 * 0.5);
  EXPECT_EQ(exact.seconds(), 41);
}

TEST(TrainingTimeTest, AnAttemptThatTrainsNothingKnowsOnlyWhatTheCheckpointSays) {
  TrainingTime estimated(false), exact(true);
  estimated.Resume(100, 0);
  exact.Resume(100, 40);
  EXPECT_EQ(estimated.seconds(), 0);
  EXPECT_EQ(exact.seconds(), 40);
}

// The bytes of a checkpoint must not depend on the clock where nothing else does.
TEST(TrainingTimeTest, CheckpointsCarryExactSecondsAlone) {
  TrainingTime estimated(false), exact(true);
  estimated.AddStep(2);
  exact.AddStep(2);
  EXPECT_EQ(estimated.seconds_for_checkpoint(), 0);
  EXPECT_EQ(exact.seconds_for_checkpoint(), 2);
}

}  // namespace
}  // namespace lengthwise::worker::training
