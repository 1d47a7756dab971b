#include "server/scheduling/scheduler.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SchedulerTest : public testing::Test {
 protected:
  void Add(TrialKey key, int64_t pack, int32_t priority = 0, int64_t step = 0) {
    ScheduledTrial trial;
    trial.key = key;
    trial.pack = pack;
    trial.priority = priority;
    trial.checkpoint_step = step;
    scheduler_.Add(trial);
  }

  void After(absl::Duration time) { now_ += time; }

  // The trials of a lease granted now.
  std::vector<TrialKey> Grant(const std::string& worker) {
    const auto decisions = scheduler_.Grant(worker, now_);
    EXPECT_TRUE(decisions.ok()) << decisions.status();
    std::vector<TrialKey> trials;
    for (const TrialChange& change : decisions->trials) trials.push_back(change.trial);
    token_ = decisions->trials.empty() ? 0 : decisions->trials[0].token;
    return trials;
  }

  Decisions Finish(TrialKey trial, v1::Outcome::Kind kind, const std::string& reason = "") {
    const auto decisions = scheduler_.Finish(trial, token_, kind, reason, now_);
    EXPECT_TRUE(decisions.ok()) << decisions.status();
    return *decisions;
  }

  Scheduler scheduler_{{}, 1};
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  Token token_ = 0;
};

TEST_F(SchedulerTest, LeasesPacksInTheOrderOfSubmissionUpToTheWorkersSize) {
  for (TrialKey key = 1; key <= 5; ++key) Add(key, /*pack=*/key == 3 ? 2 : 1);
  scheduler_.Register("w", 3, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(1, 2, 4));
  EXPECT_THAT(Grant("w"), ElementsAre(3));
  EXPECT_THAT(Grant("w"), ElementsAre(5));
  EXPECT_THAT(Grant("w"), IsEmpty());
}

TEST_F(SchedulerTest, AHigherPriorityGoesFirst) {
  Add(1, 1, 0);
  Add(2, 2, 5);
  Add(3, 3, -5);
  scheduler_.Register("w", 1, now_);
  EXPECT_THAT(scheduler_.WhyWaiting(1, now_), HasSubstr("priority 5"));
  EXPECT_THAT(Grant("w"), ElementsAre(2));
  EXPECT_THAT(Grant("w"), ElementsAre(1));
  EXPECT_THAT(Grant("w"), ElementsAre(3));
}

TEST_F(SchedulerTest, TrialsAtDifferentStepsDoNotShareAPack) {
  Add(1, 1, 0, /*step=*/100);
  Add(2, 1, 0, /*step=*/0);
  Add(3, 1, 0, /*step=*/100);
  scheduler_.Register("w", 10, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(1, 3));
  EXPECT_THAT(Grant("w"), ElementsAre(2));
}

TEST_F(SchedulerTest, HeartbeatsKeepALeaseAndSilenceEndsIt) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  for (int i = 0; i < 10; ++i) {
    After(absl::Seconds(29));
    EXPECT_THAT(scheduler_.Tick(now_).trials, IsEmpty());
    const auto directives = scheduler_.Heartbeat("w", {token_}, now_);
    ASSERT_TRUE(directives.ok());
    EXPECT_FALSE((*directives)[0].lost);
  }
  EXPECT_EQ(scheduler_.NextDeadline(), now_ + absl::Seconds(30));
  After(absl::Seconds(30));
  const Decisions decisions = scheduler_.Tick(now_);
  ASSERT_EQ(decisions.trials.size(), 1u);
  EXPECT_EQ(decisions.trials[0].to, v1::QUEUED);
  EXPECT_EQ(decisions.trials[0].reason, "lease 1 of w expired after 30s without a heartbeat");
  EXPECT_TRUE((*scheduler_.Heartbeat("w", {token_}, now_))[0].lost);
}

TEST_F(SchedulerTest, TheNextAttemptGoesOnFromTheCheckpointWithAHigherToken) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  scheduler_.SetCheckpoint(1, 500);
  scheduler_.Release("w", token_, "draining", now_);
  const Decisions decisions = *scheduler_.Grant("w", now_);
  ASSERT_EQ(decisions.trials.size(), 1u);
  EXPECT_EQ(decisions.trials[0].resumed_from_step, 500);
  EXPECT_EQ(decisions.trials[0].attempt, 2);
  EXPECT_EQ(decisions.trials[0].token, 2);
  EXPECT_EQ(decisions.trials[0].failures, 0);
}

TEST_F(SchedulerTest, ATrialThatCannotBeRunFailsWhereverItIs) {
  Add(1, 1);
  Add(2, 1);
  scheduler_.Register("w", 1, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(1));
  const Decisions waiting = scheduler_.Fail(2, "its model is damaged");
  ASSERT_EQ(waiting.trials.size(), 1u);
  EXPECT_EQ(waiting.trials[0].from, v1::QUEUED);
  EXPECT_EQ(waiting.trials[0].to, v1::FAILED);
  EXPECT_EQ(waiting.trials[0].reason, "its model is damaged");
  EXPECT_THAT(waiting.leases, IsEmpty());
  const Decisions running = scheduler_.Fail(1, "its model is damaged");
  EXPECT_EQ(running.trials[0].from, v1::RUNNING);
  EXPECT_EQ(running.leases.size(), 1u);
  EXPECT_THAT(scheduler_.Fail(1, "again").trials, IsEmpty());
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
  EXPECT_EQ(scheduler_.queued() + scheduler_.running() + scheduler_.leases(), 0);
}

TEST_F(SchedulerTest, ATemporaryFailureIsTriedAgainAfterABackOffAndThreeAreFinal) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  for (int failure = 1; failure <= 2; ++failure) {
    EXPECT_THAT(Grant("w"), ElementsAre(1));
    const Decisions decisions = Finish(1, v1::Outcome::FAILED_TEMPORARILY, "out of memory");
    EXPECT_EQ(decisions.trials[0].to, v1::QUEUED);
    EXPECT_EQ(decisions.trials[0].not_before, now_ + failure * absl::Seconds(2));
    EXPECT_THAT(Grant("w"), IsEmpty());
    EXPECT_THAT(scheduler_.WhyWaiting(1, now_), HasSubstr("after failure"));
    After(failure * absl::Seconds(2));
  }
  Grant("w");
  const Decisions decisions = Finish(1, v1::Outcome::FAILED_TEMPORARILY, "out of memory");
  EXPECT_EQ(decisions.trials[0].to, v1::FAILED);
  EXPECT_EQ(decisions.trials[0].reason, "w failed: out of memory (failure 3 of 3 allowed)");
  EXPECT_EQ(scheduler_.queued(), 0);
}

TEST_F(SchedulerTest, APermanentFailureIsFinalAtOnce) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  EXPECT_EQ(Finish(1, v1::Outcome::FAILED_PERMANENTLY, "loss is NaN").trials[0].to, v1::FAILED);
}

TEST_F(SchedulerTest, AnOutcomeOfALostLeaseChangesNothing) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  After(absl::Seconds(31));
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.Finish(1, token_, v1::Outcome::COMPLETED, "", now_).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(scheduler_.queued(), 1);
}

TEST_F(SchedulerTest, AWorkerHearsOfCancelledTrialsAndTheLeaseLivesForTheOthers) {
  Add(1, 1);
  Add(2, 1);
  scheduler_.Register("w", 2, now_);
  Grant("w");
  EXPECT_EQ(scheduler_.Cancel(1, "not needed").trials[0].reason, "not needed");
  const auto directives = scheduler_.Heartbeat("w", {token_}, now_);
  EXPECT_FALSE((*directives)[0].lost);
  EXPECT_THAT((*directives)[0].cancelled, ElementsAre(1));
  EXPECT_EQ(Finish(2, v1::Outcome::COMPLETED).trials[0].to, v1::SUCCEEDED);
  EXPECT_THAT(scheduler_.Cancel(1, "again").trials, IsEmpty());
}

TEST_F(SchedulerTest, ALeaseEndsWithItsLastOutcome) {
  Add(1, 1);
  scheduler_.Register("w", 2, now_);
  Grant("w");
  const Decisions decisions = Finish(1, v1::Outcome::COMPLETED);
  ASSERT_EQ(decisions.leases.size(), 1u);
  EXPECT_FALSE(decisions.leases[0].granted);
  EXPECT_EQ(scheduler_.leases(), 0);
}

TEST_F(SchedulerTest, UnknownWorkersRegisterFirst) {
  Add(1, 1);
  EXPECT_EQ(scheduler_.Grant("w", now_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(scheduler_.Heartbeat("w", {}, now_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(scheduler_.WhyWaiting(1, now_), "waits for a worker: none is connected");
}

TEST_F(SchedulerTest, ARestoredLeaseGoesOnForAFullDuration) {
  ScheduledTrial trial;
  trial.key = 1;
  trial.attempt = 1;
  Scheduler restored({}, 8);
  restored.RestoreLease(7, "w", {trial}, {}, now_);
  EXPECT_EQ(restored.NextDeadline(), now_ + absl::Seconds(30));
  restored.Register("w", 1, now_);
  EXPECT_FALSE((*restored.Heartbeat("w", {7}, now_))[0].lost);
  EXPECT_TRUE(restored.Finish(1, 7, v1::Outcome::COMPLETED, "", now_).ok());
}

TEST_F(SchedulerTest, AMillionQueuedTrialsAreLeasedInOrder) {
  for (TrialKey key = 1; key <= 1'000'000; ++key) Add(key, /*pack=*/key);
  scheduler_.Register("w", 1, now_);
  for (TrialKey key = 1; key <= 1000; ++key) ASSERT_THAT(Grant("w"), ElementsAre(key));
}

}  // namespace
}  // namespace lengthwise::server
