// What watchers are told of the trials that run.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/services/watch_fixture.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;

TEST_F(WatchTest, ProgressIsTheNewestPerTrialAndOnlyForWhoAsks) {
  v1::WatchExperimentRequest request;
  request.set_include_progress(true);
  Watch with(*stub_, request);
  Watch without(*stub_, {});
  ASSERT_TRUE(with.ReadOne());
  ASSERT_TRUE(without.ReadOne());
  for (int done = 1; done <= 300; ++done) {
    for (int trial = 0; trial < 2; ++trial) {
      v1::TrialProgress progress;
      progress.set_trial(TrialName(trial));
      progress.set_done(done);
      coordinator_.SendProgress(progress);
    }
  }
  int64_t newest[2] = {0, 0};
  while (newest[0] < 300 || newest[1] < 300) {
    ASSERT_TRUE(with.ReadOne());
    for (const v1::TrialProgress& progress : with.progress()) {
      newest[progress.trial() == TrialName(1)] = progress.done();
    }
  }
  // In order for each trial, though some were replaced.
  int64_t last[2] = {0, 0};
  for (const v1::TrialProgress& progress : with.progress()) {
    int64_t& before = last[progress.trial() == TrialName(1)];
    EXPECT_GT(progress.done(), before);
    before = progress.done();
  }
  EndAllTrials();
  with.ReadToEnd();
  without.ReadToEnd();
  EXPECT_TRUE(with.Finish().ok());
  EXPECT_TRUE(without.Finish().ok());
  EXPECT_TRUE(without.progress().empty());
}

// What is kept for one who does not read would grow with the trials that ever ran.
TEST_F(WatchTest, RegressionProgressOfEndedTrialsIsNotKeptForOneWhoDoesNotRead) {
  coordinator_.AddExperiment("experiments/long-1", 3);
  const auto name = [](int trial) { return absl::StrCat("experiments/long-1/trials/t", trial); };
  v1::WatchExperimentRequest request;
  request.set_name("experiments/long-1");
  request.set_include_progress(true);
  Watch slow(*stub_, request);
  ASSERT_TRUE(slow.ReadOne());
  // Once this is read from the log, its write is outstanding until the client reads: it is far
  // beyond what a connection buffers.
  v1::Event large = Line(std::string(16 << 20, 'x'));
  large.set_trial(name(2));
  const int64_t reads = coordinator_.reads();
  coordinator_.Append(large);
  ASSERT_TRUE(coordinator_.WaitFor([&] { return coordinator_.reads() > reads; }));
  for (int trial = 0; trial < 3; ++trial) {
    v1::TrialProgress progress;
    progress.set_trial(name(trial));
    for (int done = 1; done <= 5; ++done) {
      progress.set_done(done);
      coordinator_.SendProgress(progress);
    }
    if (trial < 2) coordinator_.EndTrial(name(trial));
  }
  while (slow.progress().empty()) ASSERT_TRUE(slow.ReadOne());
  coordinator_.EndTrial(name(2));
  slow.ReadToEnd();
  EXPECT_TRUE(slow.Finish().ok());
  ASSERT_EQ(slow.progress().size(), 1u);
  EXPECT_EQ(slow.progress()[0].trial(), name(2));
  EXPECT_EQ(slow.progress()[0].done(), 5);
}

TEST_F(WatchTest, ProgressOfManyTrialsComesInSeveralResponses) {
  constexpr int kTrials = 2500;
  coordinator_.AddExperiment("experiments/wide-1", kTrials);
  for (int trial = 0; trial < kTrials - 1; ++trial) {
    v1::TrialProgress progress;
    progress.set_trial(absl::StrCat("experiments/wide-1/trials/t", trial));
    coordinator_.SendProgress(progress);
  }
  v1::WatchExperimentRequest request;
  request.set_name("experiments/wide-1");
  request.set_include_progress(true);
  Watch watch(*stub_, request);
  ASSERT_TRUE(watch.ReadOne());
  // The first that it hears of brings what was told of the others.
  v1::TrialProgress progress;
  progress.set_trial(absl::StrCat("experiments/wide-1/trials/t", kTrials - 1));
  coordinator_.SendProgress(progress);
  while (watch.progress().size() < kTrials) ASSERT_TRUE(watch.ReadOne());
  EXPECT_EQ(watch.progress().back().trial(), progress.trial());
}

TEST_F(WatchTest, AWatcherOfATrialSeesItsEventsAndItsProgressAlone) {
  AppendLines(0, 10);
  v1::WatchExperimentRequest request;
  request.set_name(TrialName(1));
  request.set_include_progress(true);
  Watch watch(*stub_, request);
  ASSERT_TRUE(watch.ReadEvents(5));
  EXPECT_THAT(watch.texts(), ElementsAre("line 1", "line 3", "line 5", "line 7", "line 9"));
  v1::TrialProgress progress;
  progress.set_trial(TrialName(0));
  coordinator_.SendProgress(progress);
  progress.set_trial(TrialName(1));
  coordinator_.SendProgress(progress);
  while (watch.progress().empty()) ASSERT_TRUE(watch.ReadOne());
  ASSERT_EQ(watch.progress().size(), 1u);
  EXPECT_EQ(watch.progress()[0].trial(), TrialName(1));
  AppendLines(10, 12);
  ASSERT_TRUE(watch.ReadEvents(6));
  EXPECT_EQ(watch.texts().back(), "line 11");
  // It ends with its trial, though another runs.
  coordinator_.EndTrial(TrialName(1));
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
}

}  // namespace
}  // namespace lengthwise::server
