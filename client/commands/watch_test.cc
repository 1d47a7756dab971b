#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/commands/testing/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandsTest, WatchPrintsEachEventOnceAndFailsWithTrials) {
  server_.real().Submit("e", {"none"});
  v1::WatchExperimentResponse response;
  v1::Event& event = *response.add_events();
  event.set_position(5);
  event.set_trial(kTrial);
  event.mutable_state_change()->set_to(v1::FAILED);
  event.mutable_state_change()->set_reason("the loss is not a number");
  response.set_caught_up(true);
  response.set_next_position(6);
  server_.AnswerWatchOnce({response}, {grpc::StatusCode::UNAVAILABLE, "restarting"});
  server_.AnswerWatchOnce({response});
  EXPECT_EQ(Run({"watch", "e-1", "--output", "json"}), kFailure);
  EXPECT_EQ(nlohmann::json::parse(out_)["position"], "5");  // one line, so printed once
  EXPECT_EQ(server_.Requests<v1::WatchExperimentRequest>("WatchExperiment")[1].start_position(), 6);

  server_.AnswerWatchOnce({response});
  EXPECT_EQ(Run({"watch", "e-1"}), kFailure);
  EXPECT_THAT(out_, HasSubstr("none  failed: the loss is not a number\n"));
  EXPECT_THAT(out_, Not(HasSubstr("\x1b")));
}

TEST_F(CommandsTest, WatchFailsIfATrialWasCancelled) {
  server_.real().Submit("e", {"none"});
  v1::WatchExperimentResponse response;
  v1::Event& event = *response.add_events();
  event.set_position(5);
  event.set_trial(kTrial);
  event.mutable_state_change()->set_to(v1::CANCELLED);
  response.set_caught_up(true);
  server_.AnswerWatchOnce({response});
  EXPECT_EQ(Run({"watch", "e-1"}), kFailure);
  event.mutable_state_change()->set_to(v1::SUCCEEDED);
  server_.AnswerWatchOnce({response});
  EXPECT_EQ(Run({"watch", "e-1"}), kSuccess);
}

TEST_F(CommandsTest, WatchShowsAddedTrials) {
  server_.real().Submit("e", {"none"});
  // A seed is added after the command has read the list of trials.
  uint64_t added = 0;
  const auto extend_then_end = [&](const v1::WatchExperimentRequest&) {
    EXPECT_TRUE(server_.real().calls().Extend("experiments/e-1", {++added}).ok());
    v1::WatchExperimentResponse response;
    const auto add = [&](uint64_t seed, v1::TrialState state) {
      v1::Event& event = *response.add_events();
      event.set_position(response.events_size());
      event.set_trial(
          absl::StrCat("experiments/e-1/trials/bucket_sort-encoder-none-lr0.001-seed", seed));
      event.mutable_state_change()->set_to(state);
    };
    add(0, v1::SUCCEEDED);
    add(added, v1::QUEUED);
    add(added, v1::FAILED);
    response.set_caught_up(true);
    response.set_next_position(4);
    return FaultyServer::Answer{.messages = {response.SerializeAsString()}};
  };
  server_.AnswerBy<v1::WatchExperimentRequest>("WatchExperiment", extend_then_end);
  EXPECT_EQ(Run({"watch", "e-1"}), kFailure);
  EXPECT_THAT(out_, HasSubstr("seed 1  queued\n"));
  EXPECT_THAT(out_, HasSubstr("seed 1  failed\n"));

  EXPECT_EQ(Run({"watch", "e-1", "--output", "json"}), kFailure);
  EXPECT_THAT(out_, HasSubstr("bucket_sort-encoder-none-lr0.001-seed2"));
}

v1::Event LogEvent(int64_t position, v1::LogLine::Severity severity, const std::string& text) {
  v1::Event event;
  event.set_position(position);
  event.set_trial(kTrial);
  event.mutable_time()->set_seconds(1'700'000'000 + position);
  event.mutable_log_line()->set_severity(severity);
  event.mutable_log_line()->set_text(text);
  return event;
}

// A trial's log: it started, warned, and failed; and the stream then stays open or ends.
std::vector<v1::WatchExperimentResponse> Log() {
  v1::WatchExperimentResponse history;
  v1::Event started = LogEvent(1, v1::LogLine::INFO, "");
  started.mutable_state_change()->set_to(v1::RUNNING);
  started.mutable_state_change()->set_worker("n07");
  started.mutable_state_change()->set_resumed_from_step(300);
  started.mutable_state_change()->set_reason("leased");
  started.set_attempt(2);
  *history.add_events() = started;
  *history.add_events() = LogEvent(2, v1::LogLine::WARNING, "another build wrote the checkpoint");
  history.set_caught_up(true);
  history.set_next_position(3);
  v1::WatchExperimentResponse live;
  *live.add_events() = LogEvent(3, v1::LogLine::ERROR, "out of memory\nin layer 3");
  live.set_next_position(4);
  return {history, live};
}

TEST_F(CommandsTest, LogsPrintsATrialsHistory) {
  setenv("TZ", "UTC", 1);
  server_.real().Submit("e", {"none", "sin_cos"});
  server_.AnswerWatchOnce(Log());
  EXPECT_EQ(Run({"logs", "e-1/0"}), kSuccess) << err_;
  EXPECT_EQ(out_,
            "2023-11-14 22:13:21 UTC  state    running on n07, attempt 2, from step 300: leased\n"
            "2023-11-14 22:13:22 UTC  warning  another build wrote the checkpoint\n");
  const v1::WatchExperimentRequest request =
      server_.Requests<v1::WatchExperimentRequest>("WatchExperiment").at(0);
  EXPECT_EQ(request.name(), kTrial);
  EXPECT_TRUE(request.log_only());
}

TEST_F(CommandsTest, LogsFollowsToTheEndAndBeginsWithTheTail) {
  setenv("TZ", "UTC", 1);
  server_.real().Submit("e", {"none"});
  server_.AnswerWatchOnce(Log());
  EXPECT_EQ(Run({"logs", "e-1/0", "--follow", "--tail", "1"}), kSuccess) << err_;
  EXPECT_EQ(out_,
            "2023-11-14 22:13:22 UTC  warning  another build wrote the checkpoint\n"
            "2023-11-14 22:13:23 UTC  error    out of memory\n    in layer 3\n");
  server_.AnswerWatchOnce(Log());
  EXPECT_EQ(Run({"logs", "e-1/0", "--follow", "--output", "json"}), kSuccess);
  const std::vector<std::string> lines = absl::StrSplit(out_, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(lines[2])["text"], "out of memory\nin layer 3");
  EXPECT_EQ(Run({"logs", "e-1/7"}), kFailure);
  EXPECT_THAT(err_, HasSubstr("there is no trial \"7\""));
}

TEST_F(CommandsTest, PlainWatchReportsLostConnectionAndReturn) {
  server_.real().Submit("e", {"none"});
  v1::WatchExperimentResponse response;
  response.set_caught_up(true);
  response.set_next_position(1);
  server_.AnswerWatchOnce({response}, {grpc::StatusCode::UNAVAILABLE, "restarting"});
  server_.AnswerWatchOnce({}, {grpc::StatusCode::UNAVAILABLE, "restarting"});
  server_.AnswerWatchOnce({response});
  EXPECT_EQ(Run({"watch", "e-1"}), kSuccess);
  EXPECT_THAT(err_, HasSubstr("lengthwise: connection lost 0:00 ago, trying again: "));
}

}  // namespace
}  // namespace lengthwise::client
