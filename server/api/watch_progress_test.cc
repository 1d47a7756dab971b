// Progress of running trials for watchers.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/testing/watch_fixture.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;

TEST_F(WatchTest, ProgressIsTheNewestPerTrialOnRequest) {
  v1::WatchExperimentRequest request;
  request.set_include_progress(true);
  Watch with(*stub_, request);
  Watch without(*stub_, {});
  ASSERT_TRUE(with.ReadOne());
  ASSERT_TRUE(without.ReadOne());
  for (int done = 1; done <= 300; ++done) {
    for (int trial = 0; trial < 2; ++trial) {
      server_.SendProgress(NameOf(trial), done);
    }
  }
  int64_t newest[2] = {0, 0};
  while (newest[0] < 300 || newest[1] < 300) {
    ASSERT_TRUE(with.ReadOne());
    for (const v1::TrialProgress& progress : with.progress()) {
      newest[progress.trial() == NameOf(1)] = progress.done();
    }
  }
  // In order for each trial, although some were replaced.
  int64_t last[2] = {0, 0};
  for (const v1::TrialProgress& progress : with.progress()) {
    int64_t& before = last[progress.trial() == NameOf(1)];
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

// Otherwise the memory for a client that does not read would grow with every trial that ever ran.
TEST_F(WatchTest, RegressionProgressOfEndedTrialsIsDropped) {
  const std::string experiment = server_.AddExperiment("long", 3);
  const auto name = [&](int trial) { return absl::StrCat(experiment, "/trials/t", trial); };
  v1::WatchExperimentRequest request;
  request.set_name(experiment);
  request.set_include_progress(true);
  Watch slow(*stub_, request);
  while (slow.caught_up() == 0) ASSERT_TRUE(slow.ReadOne());
  // Once this is read from the log, its write is outstanding until the client reads: together the
  // events far exceed what a connection buffers.
  for (int i = 0; i < 16; ++i) {
    v1::Event large = Large(1 << 20);
    large.set_trial(name(2));
    server_.Append(large);
  }
  ASSERT_TRUE(AwaitBehind(1));
  for (int trial = 0; trial < 3; ++trial) {
    for (int done = 1; done <= 5; ++done) server_.SendProgress(name(trial), done);
    if (trial < 2) server_.EndTrial(name(trial));
  }
  while (slow.progress().empty()) ASSERT_TRUE(slow.ReadOne());
  server_.EndTrial(name(2));
  slow.ReadToEnd();
  EXPECT_TRUE(slow.Finish().ok());
  ASSERT_EQ(slow.progress().size(), 1u);
  EXPECT_EQ(slow.progress()[0].trial(), name(2));
  EXPECT_EQ(slow.progress()[0].done(), 5);
}

TEST_F(WatchTest, ProgressOfManyTrialsComesInSeveralResponses) {
  constexpr int kTrials = 2500;
  const std::string experiment = server_.AddExperiment("wide", kTrials);
  const auto name = [&](int trial) { return absl::StrCat(experiment, "/trials/t", trial); };
  std::vector<v1::TrialProgress> of_others(kTrials - 1);
  for (int trial = 0; trial < kTrials - 1; ++trial) {
    of_others[trial].set_trial(name(trial));
    of_others[trial].set_done(1);
  }
  server_.SendProgress(of_others);
  v1::WatchExperimentRequest request;
  request.set_name(experiment);
  request.set_include_progress(true);
  Watch watch(*stub_, request);
  ASSERT_TRUE(watch.ReadOne());
  // The first progress that it gets brings that of the others.
  server_.SendProgress(name(kTrials - 1), 1);
  while (watch.progress().size() < kTrials) ASSERT_TRUE(watch.ReadOne());
  EXPECT_EQ(watch.progress().back().trial(), name(kTrials - 1));
}

TEST_F(WatchTest, TrialWatcherSeesOnlyItsTrial) {
  AppendLines(0, 10);
  v1::WatchExperimentRequest request;
  request.set_name(NameOf(1));
  request.set_include_progress(true);
  Watch watch(*stub_, request);
  ASSERT_TRUE(watch.ReadEvents(5));
  EXPECT_THAT(watch.texts(), ElementsAre("line 1", "line 3", "line 5", "line 7", "line 9"));
  server_.SendProgress(NameOf(0), 1);
  server_.SendProgress(NameOf(1), 1);
  while (watch.progress().empty()) ASSERT_TRUE(watch.ReadOne());
  ASSERT_EQ(watch.progress().size(), 1u);
  EXPECT_EQ(watch.progress()[0].trial(), NameOf(1));
  AppendLines(10, 12);
  ASSERT_TRUE(watch.ReadEvents(6));
  EXPECT_EQ(watch.texts().back(), "line 11");
  // It ends with its trial, although another is running.
  server_.EndTrial(NameOf(1));
  watch.ReadToEnd();
  EXPECT_TRUE(watch.Finish().ok());
}

}  // namespace
}  // namespace lengthwise::server
