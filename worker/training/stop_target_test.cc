#include "worker/training/stop_target.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::worker::training {
namespace {

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

TEST(StopTargetTest, WithoutTargetsTrainingContinues) {
  EXPECT_EQ(ReachedTime({}, 1e9), "");
  EXPECT_EQ(ReachedAccuracy({}, 40, Accuracies({{50, 1}})), "");
}

TEST(StopTargetTest, TimeLimitStopsTraining) {
  v1::Training training;
  training.set_stop_after_seconds(1.5);
  EXPECT_EQ(ReachedTime(training, 1.25), "");
  EXPECT_THAT(ReachedTime(training, 1.5), HasSubstr("1.5 s"));
  EXPECT_THAT(ReachedTime(training, 1.75), HasSubstr("training.stop_after_seconds is 1.5"));
}

TEST(StopTargetTest, AccuracyCountsOnlyUnseenLengths) {
  EXPECT_EQ(ReachedAccuracy(StopAt(0.5), 40, Accuracies({{40, 1}, {41, 0.25}, {80, 0.5}})), "");
  EXPECT_THAT(ReachedAccuracy(StopAt(0.375), 40, Accuracies({{40, 0}, {41, 0.25}, {80, 0.5}})),
              HasSubstr("unseen lengths was 0.375"));
}

TEST(StopTargetTest, AllLengthsCountIfAllAreSeen) {
  EXPECT_EQ(ReachedAccuracy(StopAt(0.75), 40, Accuracies({{20, 0.25}, {40, 0.75}})), "");
  EXPECT_THAT(ReachedAccuracy(StopAt(0.5), 40, Accuracies({{20, 0.25}, {40, 0.75}})),
              HasSubstr("evaluated lengths was 0.5"));
}

}  // namespace
}  // namespace lengthwise::worker::training
