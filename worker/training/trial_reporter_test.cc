#include "worker/training/trial_reporter.h"

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/training/testing/recording_session.h"

namespace lengthwise::worker::training {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

class TrialReporterTest : public ::testing::Test {
 protected:
  void AddPoint(int64_t step) {
    reporter_.AddPoint({.step = step,
                        .loss = 0.5f * static_cast<float>(step),
                        .accuracy = 0.25f,
                        .gradient_norm = 3,
                        .length = 7},
                       now_);
  }

  TrialReporter::TimePoint now_{};
  RecordingSession session_;
  TrialReporter reporter_{session_, 4, now_};
};

TEST_F(TrialReporterTest, TenPointsMakeAnEvent) {
  for (int step = 1; step <= 9; ++step) AddPoint(step);
  EXPECT_TRUE(session_.events(4).empty());
  AddPoint(10);
  ASSERT_EQ(session_.events(4).size(), 1);
  const v1::Event& event = session_.events(4)[0];
  EXPECT_EQ(event.step(), 10);
  EXPECT_THAT(event.training_points().steps(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_FLOAT_EQ(event.training_points().losses(3), 2);
  EXPECT_FLOAT_EQ(event.training_points().accuracies(3), 0.25);
  EXPECT_FLOAT_EQ(event.training_points().gradient_norms(3), 3);
  EXPECT_EQ(event.training_points().lengths(3), 7);
}

TEST_F(TrialReporterTest, PointsWaitAtMostOneSecond) {
  AddPoint(5);
  now_ += milliseconds(999);
  reporter_.Tick(now_);
  EXPECT_TRUE(session_.events(4).empty());
  now_ += milliseconds(1);
  reporter_.Tick(now_);
  EXPECT_EQ(session_.events(4).size(), 1);
}

TEST_F(TrialReporterTest, RarePointsAreSentAtOnce) {
  now_ += std::chrono::seconds(30);
  AddPoint(100);
  EXPECT_EQ(session_.events(4).size(), 1);
}

TEST_F(TrialReporterTest, PointsNeverSpanACheckpoint) {
  AddPoint(1);
  AddPoint(2);
  reporter_.EmitCheckpoint(2, "bytes");
  AddPoint(3);
  reporter_.Emit(3, v1::Event());
  const auto& events = session_.events(4);
  ASSERT_EQ(events.size(), 4);
  EXPECT_THAT(events[0].training_points().steps(), ElementsAre(1, 2));
  EXPECT_TRUE(events[1].has_checkpoint());
  EXPECT_THAT(events[2].training_points().steps(), ElementsAre(3));
  EXPECT_EQ(events[3].step(), 3);
}

}  // namespace
}  // namespace lengthwise::worker::training
