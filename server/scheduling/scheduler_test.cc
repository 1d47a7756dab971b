#include "server/scheduling/scheduler.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class SchedulerTest : public testing::Test {
 protected:
  void Add(TrialKey key, int64_t pack, int32_t priority = 0, int64_t step = 0,
           const std::string& owner = "ada") {
    ScheduledTrial trial;
    trial.key = key;
    trial.pack = pack;
    trial.checkpoint_step = step;
    scheduler_.Add(trial, {.priority = priority, .owner = owner, .shape = "shape"});
  }

  void After(absl::Duration time) { now_ += time; }

  // Grants a lease and returns its trials.
  std::vector<TrialKey> Grant(const std::string& worker) {
    const auto decisions = scheduler_.Grant(worker, now_);
    EXPECT_TRUE(decisions.ok()) << decisions.status();
    std::vector<TrialKey> trials;
    for (const TrialChange& change : decisions->trials) trials.push_back(change.trial);
    token_ = decisions->trials.empty() ? 0 : decisions->trials[0].token;
    return trials;
  }

  Decisions Finish(TrialKey trial, v1::Outcome::Kind kind, const std::string& reason = "",
                   int64_t step = 0) {
    const auto decisions = scheduler_.Finish(trial, token_, kind, step, reason, now_);
    EXPECT_TRUE(decisions.ok()) << decisions.status();
    return *decisions;
  }

  // Renews the newest lease and returns its directive.
  LeaseDirective Beat(const std::string& worker) { return Beat(worker, token_); }
  LeaseDirective Beat(const std::string& worker, Token token) {
    EXPECT_EQ(scheduler_.Heartbeat(worker, {token}, now_), absl::OkStatus());
    return scheduler_.DirectiveOf(worker, token);
  }

  Scheduler scheduler_{{}, 1};
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  Token token_ = 0;
};

TEST_F(SchedulerTest, LeasesPacksInTheOrderOfSubmission) {
  for (TrialKey key = 1; key <= 5; ++key) Add(key, /*pack=*/key == 3 ? 2 : 1);
  scheduler_.Register("w", 3, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(1, 2, 4));
  EXPECT_THAT(Grant("w"), ElementsAre(3));
  EXPECT_THAT(Grant("w"), ElementsAre(5));
  EXPECT_THAT(Grant("w"), IsEmpty());
}

TEST_F(SchedulerTest, LeaseHasAtMostWhatItsMessageHolds) {
  for (TrialKey key = 1; key <= 5; ++key) {
    scheduler_.Add({.key = key, .pack = 1}, {.owner = "ada", .shape = "shape", .most = 2});
  }
  EXPECT_EQ(scheduler_.Wanted(100).at("shape").packs, 3);
  scheduler_.Register("w", 100, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(1, 2));
  EXPECT_THAT(Grant("w"), ElementsAre(3, 4));
  EXPECT_THAT(Grant("w"), ElementsAre(5));
}

TEST_F(SchedulerTest, ManyLeasesExpireInParts) {
  for (TrialKey key = 1; key <= 1500; ++key) Add(key, /*pack=*/1);
  scheduler_.Register("w", 10, now_);
  while (!Grant("w").empty()) {
  }
  After(absl::Minutes(1));
  EXPECT_EQ(scheduler_.Tick(now_).trials.size(), 1000);
  EXPECT_LE(scheduler_.NextDeadline(), now_);
  EXPECT_EQ(scheduler_.Tick(now_).trials.size(), 500);
  EXPECT_EQ(scheduler_.leases(), 0);
}

TEST_F(SchedulerTest, AHigherPriorityGoesFirst) {
  Add(1, 1, 0);
  Add(2, 2, 5);
  Add(3, 3, -5);
  scheduler_.Register("w", 1, now_);
  EXPECT_THAT(scheduler_.WhyWaiting(3, now_),
              HasSubstr("waits for 2 packs of a higher priority (up to 5; its own is -5)"));
  EXPECT_THAT(Grant("w"), ElementsAre(2));
  EXPECT_THAT(Grant("w"), ElementsAre(1));
  EXPECT_THAT(Grant("w"), ElementsAre(3));
}

TEST_F(SchedulerTest, TrialsAtDifferentStepsShareNoPack) {
  Add(1, 1, 0, /*step=*/100);
  Add(2, 1, 0, /*step=*/0);
  Add(3, 1, 0, /*step=*/100);
  scheduler_.Register("w", 10, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(1, 3));
  EXPECT_THAT(Grant("w"), ElementsAre(2));
}

TEST_F(SchedulerTest, LeaseExpiresWithoutHeartbeats) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  for (int i = 0; i < 10; ++i) {
    After(absl::Seconds(29));
    EXPECT_THAT(scheduler_.Tick(now_).trials, IsEmpty());
    EXPECT_FALSE(Beat("w").lost);
  }
  EXPECT_EQ(scheduler_.NextDeadline(), now_ + absl::Seconds(30));
  After(absl::Seconds(30));
  const Decisions decisions = scheduler_.Tick(now_);
  ASSERT_EQ(decisions.trials.size(), 1u);
  EXPECT_EQ(decisions.trials[0].to, v1::QUEUED);
  EXPECT_EQ(decisions.trials[0].reason, "lease 1 of w expired after 30s without a heartbeat");
  EXPECT_EQ(decisions.trials[0].actor, "scheduler");
  EXPECT_TRUE(Beat("w").lost);
}

// A pack of three trials, of which the first ends every worker.
TEST_F(SchedulerTest, TrialThatLosesItsWorkersRunsAloneAndThenFails) {
  for (TrialKey key = 1; key <= 3; ++key) Add(key, /*pack=*/1);
  scheduler_.Register("w", 3, now_);
  const auto lose = [&] {
    After(absl::Seconds(30));
    return scheduler_.Tick(now_).trials;
  };
  EXPECT_THAT(Grant("w"), ElementsAre(1, 2, 3));
  lose();
  EXPECT_THAT(Grant("w"), ElementsAre(1, 2, 3)) << "one loss proves nothing";
  for (const TrialChange& change : lose()) {
    EXPECT_EQ(change.to, v1::QUEUED);
    EXPECT_EQ(change.past.losses, 2);
    EXPECT_EQ(change.reason,
              "lease 2 of w expired after 30s without a heartbeat; 2 workers in a row were lost "
              "with this trial and no new checkpoint: it continues alone");
  }
  EXPECT_THAT(scheduler_.WhyWaiting(1, now_),
              HasSubstr("runs alone, because 2 workers in a row were lost with it"));
  EXPECT_THAT(Grant("w"), ElementsAre(1));
  const std::vector<TrialChange> changes = lose();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].trial, 1);
  EXPECT_EQ(changes[0].to, v1::FAILED);
  EXPECT_THAT(changes[0].reason,
              AllOf(HasSubstr("3 workers in a row were lost with this trial and no new checkpoint"),
                    HasSubstr("the last one with this trial alone"), HasSubstr("retry")));
  // The others go on, alone until they have a checkpoint of their own.
  for (const TrialKey key : {2, 3}) {
    EXPECT_THAT(Grant("w"), ElementsAre(key));
    scheduler_.SetCheckpoint(key, 10);
  }
  scheduler_.EndLeases("was released");
  EXPECT_THAT(Grant("w"), ElementsAre(2, 3));
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
}

TEST_F(SchedulerTest, NewCheckpointOrRetryForgivesLostWorkers) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  const auto lose = [&] {
    EXPECT_THAT(Grant("w"), ElementsAre(1));
    After(absl::Seconds(30));
    return scheduler_.Tick(now_).trials.at(0);
  };
  for (int64_t step = 10; step <= 50; step += 10) {
    EXPECT_EQ(lose().past.losses, 1);
    EXPECT_EQ(lose().past.losses, 2);
    scheduler_.SetCheckpoint(1, step);
  }
  // Falling back to an older checkpoint is no progress.
  lose();
  scheduler_.SetCheckpoint(1, 20);
  EXPECT_EQ(lose().past.losses, 2);
  const TrialChange failed = lose();
  EXPECT_EQ(failed.to, v1::FAILED);
  ScheduledTrial trial = {.key = 1, .pack = 1, .checkpoint_step = 20, .past = failed.past};
  scheduler_.Retry(trial, {}, v1::FAILED, "user ada", "again");
  EXPECT_EQ(lose().past.losses, 1);
}

TEST_F(SchedulerTest, OnlyLostWorkersCountAgainstATrial) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  for (int i = 0; i < 5; ++i) {
    Grant("w");
    EXPECT_EQ(scheduler_.Release("w", token_, "the worker was asked to stop").trials[0].past.losses,
              0);
    Grant("w");
    EXPECT_EQ(scheduler_.EndLeases("was released").trials[0].past.losses, 0);
  }
  // A preempted worker that is lost before it gives the lease back.
  Grant("w");
  Add(2, 2, /*priority=*/1);
  After(absl::Minutes(1));
  ASSERT_TRUE(scheduler_.Heartbeat("w", {token_}, now_).ok());
  scheduler_.Tick(now_);
  ASSERT_NE(Beat("w").preempted, "");
  After(absl::Seconds(30));
  const Decisions decisions = scheduler_.Tick(now_);
  EXPECT_EQ(decisions.trials.at(0).past.losses, 0);
  EXPECT_EQ(decisions.trials[0].past.preemptions, 1);
}

// What ended the server may have ended its workers, too, or end them soon.
TEST_F(SchedulerTest, WorkersLostAroundARestartCountAgainstNoTrial) {
  const auto lose = [&](Scheduler& scheduler) {
    After(absl::Seconds(30));
    const Decisions decisions = scheduler.Tick(now_);
    EXPECT_EQ(decisions.trials.size(), 1u);
    EXPECT_EQ(decisions.trials[0].to, v1::QUEUED);
    return decisions.trials[0].past.losses;
  };
  Scheduler restored({}, 8);
  restored.RestoreLease(7, "w", 1, {{.key = 1, .past = {.attempt = 1, .losses = 2}}}, {}, {}, now_);
  restored.Register("w", 1, now_);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(lose(restored), 2);
    ASSERT_EQ(restored.Grant("w", now_)->trials.size(), 1u);
  }
  After(absl::Seconds(30));
  EXPECT_EQ(restored.Tick(now_).trials.at(0).to, v1::FAILED);
  // Without a lease, the server was not away from anything.
  Scheduler idle({}, 8);
  idle.Add({.key = 1, .past = {.attempt = 2, .losses = 2}}, {});
  idle.Register("w", 1, now_);
  ASSERT_EQ(idle.Grant("w", now_)->trials.size(), 1u);
  After(absl::Seconds(30));
  EXPECT_EQ(idle.Tick(now_).trials.at(0).to, v1::FAILED);
}

TEST_F(SchedulerTest, TrialWhoseDevicesFailLosesWorkersToo) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  for (int32_t losses = 1; losses <= 3; ++losses) {
    Grant("w");
    const TrialChange change =
        scheduler_.Release("w", token_, "its GPU is lost", /*lost=*/true).trials.at(0);
    EXPECT_EQ(change.past.losses, losses);
    EXPECT_EQ(change.past.failures, 0);
    EXPECT_EQ(change.to, losses < 3 ? v1::QUEUED : v1::FAILED);
  }
}

// A supervisor starts the worker of a broken GPU again and again.
TEST_F(SchedulerTest, BrokenDeviceBesideAGoodOneCountsAgainstNoTrial) {
  for (const TrialKey key : {1, 2}) Add(key, /*pack=*/key);
  scheduler_.Register("good", 1, now_);
  EXPECT_THAT(Grant("good"), ElementsAre(1));
  const Token good = token_;
  for (int start = 0; start < 5; ++start) {
    const std::string bad = absl::StrCat("bad-", start);
    scheduler_.Register(bad, 1, now_);
    EXPECT_THAT(Grant(bad), ElementsAre(2));
    const TrialChange change =
        scheduler_.Release(bad, token_, "its GPU is lost", /*lost=*/true).trials.at(0);
    EXPECT_EQ(change.to, v1::QUEUED);
    EXPECT_EQ(change.past.losses, 0);
    scheduler_.Unregister(bad);
  }
  // With a worker that has trained, it may be the trial.
  token_ = good;
  Finish(1, v1::Outcome::COMPLETED);
  EXPECT_THAT(Grant("good"), ElementsAre(2));
  EXPECT_EQ(
      scheduler_.Release("good", token_, "its GPU is lost", /*lost=*/true).trials.at(0).past.losses,
      1);
}

// Trials 1 and 2 need files of examples, which the worker cannot store; trial 3 needs none.
TEST_F(SchedulerTest, UnfitWorkerGetsNoSuchPackForAWhile) {
  for (const TrialKey key : {1, 2, 3}) {
    scheduler_.Add({.key = key, .pack = key},
                   {.owner = "ada", .shape = key < 3 ? "examples" : "built in"});
  }
  scheduler_.Register("bad", 1, now_);
  scheduler_.Register("good", 1, now_);
  const auto give_back = [&] {
    scheduler_.SetUnfit("bad", token_, "its disk is full", now_);
    const Decisions decisions = scheduler_.Release("bad", token_, "its disk is full");
    EXPECT_EQ(decisions.trials.at(0).to, v1::QUEUED);
    EXPECT_EQ(decisions.trials[0].past.failures, 0);
    EXPECT_EQ(decisions.trials[0].past.losses, 0);
  };
  EXPECT_THAT(Grant("bad"), ElementsAre(1));
  give_back();
  EXPECT_EQ(scheduler_.FaultOf("bad", now_), "its disk is full");
  EXPECT_EQ(scheduler_.FaultOf("good", now_), "");
  EXPECT_TRUE(scheduler_.IsIdle("good", now_));
  EXPECT_FALSE(scheduler_.IsIdle("bad", now_)) << "an autoscaler must not count on it";
  EXPECT_THAT(Grant("bad"), ElementsAre(3)) << "it can run this one";
  Finish(3, v1::Outcome::COMPLETED);
  EXPECT_FALSE(scheduler_.HasRunnable("bad", now_));
  EXPECT_THAT(Grant("bad"), IsEmpty());
  EXPECT_EQ(scheduler_.WhyNothing("bad", now_),
            "no trial can be leased that this machine can run now: its disk is full");
  EXPECT_THAT(Grant("good"), ElementsAre(1));
  // Without another worker the trial waits, and says why.
  scheduler_.Unregister("good");
  EXPECT_EQ(scheduler_.WhyWaiting(2, now_),
            "waits for a worker that can run it; bad cannot run it now: its disk is full");
  // It tries again after a minute, then after two.
  for (const int minutes : {1, 2}) {
    After(absl::Minutes(minutes) - absl::Seconds(1));
    EXPECT_THAT(Grant("bad"), IsEmpty());
    After(absl::Seconds(1));
    EXPECT_THAT(Grant("bad"), ElementsAre(2));
    give_back();
  }
  After(absl::Minutes(4));
  EXPECT_THAT(Grant("bad"), ElementsAre(2));
  Finish(2, v1::Outcome::COMPLETED);
  EXPECT_EQ(scheduler_.FaultOf("bad", now_), "");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
}

TEST_F(SchedulerTest, WorkerIsUnfitWhoseFirstTrialsFailWhereOthersDoNot) {
  for (TrialKey key = 1; key <= 5; ++key) Add(key, /*pack=*/key);
  scheduler_.Register("good", 1, now_);
  scheduler_.Register("bad", 1, now_);
  EXPECT_THAT(Grant("good"), ElementsAre(1));
  const Token good = token_;
  for (const TrialKey key : {2, 3, 4}) {
    EXPECT_THAT(Grant("bad"), ElementsAre(key));
    const TrialChange change =
        Finish(key, v1::Outcome::FAILED_TEMPORARILY, "libx.so is missing").trials.at(0);
    EXPECT_EQ(change.to, v1::QUEUED);
    EXPECT_EQ(change.past.failures, key < 4 ? 1 : 0);
    if (key < 4) continue;
    EXPECT_EQ(change.reason,
              "the machine of bad may be at fault, so this is no failure of the trial: its first 3 "
              "trials failed, where other workers' do not; the last one: libx.so is missing");
  }
  EXPECT_THAT(Grant("bad"), IsEmpty());
  EXPECT_THAT(scheduler_.FaultOf("bad", now_), HasSubstr("libx.so is missing"));
  // The others' failure elsewhere is their own.
  token_ = good;
  Finish(1, v1::Outcome::COMPLETED);
  After(absl::Seconds(2));
  EXPECT_THAT(Grant("good"), ElementsAre(2));
  EXPECT_EQ(Finish(2, v1::Outcome::FAILED_TEMPORARILY, "libx.so is missing").trials.at(0).to,
            v1::FAILED);
}

TEST_F(SchedulerTest, TrialThatFailsOnOneBadMachineIsTriedElsewhere) {
  Add(1, 1);
  Add(2, 2);
  scheduler_.Register("good", 1, now_);
  scheduler_.Register("bad", 1, now_);
  EXPECT_THAT(Grant("good"), ElementsAre(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Grant("bad"), ElementsAre(2));
    EXPECT_EQ(Finish(2, v1::Outcome::FAILED_TEMPORARILY, "libx.so is missing").trials.at(0).to,
              v1::QUEUED);
    After(absl::Seconds(10));
  }
  EXPECT_THAT(Grant("bad"), IsEmpty());
  EXPECT_THAT(Grant("good"), ElementsAre(2));
}

TEST_F(SchedulerTest, EndedLeasesRequeueTheirTrials) {
  Add(1, 1);
  Add(2, 2);
  Add(3, 2);
  scheduler_.Register("w", 2, now_);
  Grant("w");
  Grant("w");
  scheduler_.Cancel(3, "user ada", "");
  const Decisions decisions = scheduler_.EndLeases("was released");
  EXPECT_EQ(decisions.leases.size(), 2u);
  ASSERT_EQ(decisions.trials.size(), 2u);
  EXPECT_EQ(decisions.trials[0].reason, "lease 1 of w was released");
  EXPECT_EQ(decisions.trials[1].reason, "lease 2 of w was released");
  EXPECT_EQ(decisions.trials[1].to, v1::QUEUED);
  EXPECT_EQ(decisions.trials[1].actor, "scheduler");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
  EXPECT_TRUE(Beat("w").lost);
  EXPECT_THAT(scheduler_.EndLeases("was released").leases, IsEmpty());
  EXPECT_THAT(Grant("w"), ElementsAre(1));
  EXPECT_EQ(token_, 3) << "tokens are not used again";
}

TEST_F(SchedulerTest, LeaseOutlivesAPauseOfItsServer) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  scheduler_.Hear(now_);
  Grant("w");
  // A tenth of a lease counts, and Hear is due after half of it.
  EXPECT_EQ(scheduler_.NextDeadline(), now_ + absl::Milliseconds(1500));
  After(absl::Minutes(5));
  scheduler_.Hear(now_);
  EXPECT_THAT(scheduler_.Tick(now_).trials, IsEmpty());
  EXPECT_TRUE(scheduler_.IsAlive("w", now_));
  for (int i = 0; i < 9; ++i) {
    EXPECT_THAT(scheduler_.Tick(now_).trials, IsEmpty());
    After(absl::Seconds(3));
    scheduler_.Hear(now_);
  }
  EXPECT_EQ(scheduler_.Tick(now_).trials.size(), 1u);
}

TEST_F(SchedulerTest, CallsThatWaitCanRenewALease) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  const absl::Time expires = now_ + absl::Seconds(30);
  After(absl::Seconds(40));
  scheduler_.Hear(expires - absl::Microseconds(1));
  EXPECT_THAT(scheduler_.Tick(now_).trials, IsEmpty());
  scheduler_.Hear(expires);
  EXPECT_EQ(scheduler_.Tick(now_).trials.size(), 1u);
}

TEST_F(SchedulerTest, WorkersHaveTheTrialsOfAllTheirLeases) {
  for (TrialKey key = 1; key <= 4; ++key) Add(key, /*pack=*/key);
  for (const char* worker : {"one", "two", "idle"}) scheduler_.Register(worker, 1, now_);
  Grant("two");
  Grant("one");
  Grant("two");
  Grant("one");
  scheduler_.Cancel(4, "user ada", "");
  EXPECT_THAT(scheduler_.TrialsByWorker(),
              UnorderedElementsAre(Pair("one", ElementsAre(2)), Pair("two", ElementsAre(1, 3))));
}

TEST_F(SchedulerTest, NextAttemptResumesWithAHigherToken) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  scheduler_.SetCheckpoint(1, 500);
  EXPECT_EQ(scheduler_.Release("w", token_, "draining").trials[0].actor, "worker w");
  const Decisions decisions = *scheduler_.Grant("w", now_);
  ASSERT_EQ(decisions.trials.size(), 1u);
  EXPECT_EQ(decisions.trials[0].resumed_from_step, 500);
  EXPECT_EQ(decisions.trials[0].past.attempt, 2);
  EXPECT_EQ(decisions.trials[0].token, 2);
  EXPECT_EQ(decisions.trials[0].past.failures, 0);
}

TEST_F(SchedulerTest, UnrunnableTrialFailsInAnyState) {
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

TEST_F(SchedulerTest, PostponedTrialWaitsAndSaysWhy) {
  for (TrialKey key = 1; key <= 3; ++key) Add(key, 1);
  scheduler_.Register("w", 2, now_);
  scheduler_.Postpone(1, now_ + absl::Seconds(5), "its file cannot be read");
  scheduler_.Postpone(4, now_ + absl::Seconds(5), "it is not known");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
  EXPECT_EQ(scheduler_.WhyWaiting(1, now_), "waits 5s more: its file cannot be read");
  EXPECT_THAT(Grant("w"), ElementsAre(2, 3));
  scheduler_.Postpone(2, now_ + absl::Seconds(5), "it runs");
  EXPECT_THAT(Grant("w"), IsEmpty());
  EXPECT_EQ(scheduler_.NextDeadline(), now_ + absl::Seconds(5));
  After(absl::Seconds(5));
  EXPECT_THAT(Grant("w"), ElementsAre(1));
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());

  Add(5, 2);
  scheduler_.Postpone(5, now_ + absl::Seconds(5), "its file cannot be read");
  EXPECT_EQ(scheduler_.Cancel(5, "user ada", "why not").trials.size(), 1u);
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
}

TEST_F(SchedulerTest, TemporaryFailuresBackOffAndTheThirdIsFinal) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  for (int failure = 1; failure <= 2; ++failure) {
    EXPECT_THAT(Grant("w"), ElementsAre(1));
    const Decisions decisions =
        Finish(1, v1::Outcome::FAILED_TEMPORARILY, "disk full", /*step=*/10 * failure);
    EXPECT_EQ(decisions.trials[0].to, v1::QUEUED);
    EXPECT_EQ(decisions.trials[0].actor, "worker w");
    EXPECT_EQ(decisions.trials[0].past.not_before, now_ + failure * absl::Seconds(2));
    EXPECT_THAT(Grant("w"), IsEmpty());
    EXPECT_THAT(scheduler_.WhyWaiting(1, now_), HasSubstr("after failure"));
    EXPECT_EQ(scheduler_.NextDeadline(), now_ + failure * absl::Seconds(2));
    After(failure * absl::Seconds(2));
    scheduler_.Tick(now_);
    EXPECT_EQ(scheduler_.NextDeadline(), absl::InfiniteFuture());
  }
  Grant("w");
  const Decisions decisions = Finish(1, v1::Outcome::FAILED_TEMPORARILY, "disk full", 30);
  EXPECT_EQ(decisions.trials[0].to, v1::FAILED);
  EXPECT_EQ(decisions.trials[0].reason, "w failed: disk full (failure 3 of 3 allowed)");
  EXPECT_EQ(decisions.trials[0].actor, "scheduler");
  EXPECT_EQ(scheduler_.queued(), 0);
}

TEST_F(SchedulerTest, RepeatedFailureAtOneStepIsFinal) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  Finish(1, v1::Outcome::FAILED_TEMPORARILY, "index 17 is out of range", 40);
  After(absl::Seconds(2));
  // An attempt without an outcome comes between.
  Grant("w");
  scheduler_.Release("w", token_, "draining");
  Grant("w");
  const Decisions decisions =
      Finish(1, v1::Outcome::FAILED_TEMPORARILY, "index 23 is out of range", 40);
  EXPECT_EQ(decisions.trials[0].to, v1::FAILED);
  EXPECT_EQ(decisions.trials[0].reason,
            "w failed: index 23 is out of range (for the second time in a row, again at step 40)");
  EXPECT_EQ(decisions.trials[0].actor, "scheduler");
}

TEST_F(SchedulerTest, RepeatedFailureIsRecognizedAfterARestart) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  const TrialPast past = Finish(1, v1::Outcome::FAILED_TEMPORARILY, "no disk", 40).trials[0].past;
  Scheduler restarted({}, 2);
  restarted.Add({.key = 1, .pack = 1, .past = past}, {});
  restarted.Register("w", 1, now_);
  After(absl::Seconds(2));
  const Token token = restarted.Grant("w", now_)->trials[0].token;
  EXPECT_EQ(restarted.Finish(1, token, v1::Outcome::FAILED_TEMPORARILY, 40, "no disk", now_)
                ->trials[0]
                .to,
            v1::FAILED);
}

TEST_F(SchedulerTest, PackThatDoesNotFitIsSplit) {
  for (TrialKey key = 1; key <= 4; ++key) Add(key, 1);
  for (TrialKey key = 5; key <= 8; ++key) Add(key, 2);
  scheduler_.Register("small", 8, now_);
  scheduler_.Register("large", 8, now_);
  EXPECT_THAT(Grant("small"), ElementsAre(1, 2, 3, 4));
  for (TrialKey key = 1; key <= 4; ++key) {
    const TrialChange change = Finish(key, v1::Outcome::OUT_OF_MEMORY, "2 GiB wanted").trials.at(0);
    EXPECT_EQ(change.to, v1::QUEUED);
    EXPECT_EQ(change.past.failures, 0);
    EXPECT_EQ(
        change.reason,
        "the memory of small is too small for the pack of 4 (2 GiB wanted); continues in packs of "
        "at most 2");
  }
  EXPECT_EQ(scheduler_.leases(), 0);
  EXPECT_THAT(scheduler_.WhyWaiting(3, now_), HasSubstr("limited to packs of at most 2"));
  // The trials continue in halves on any worker; other trials of the shape only on this one.
  EXPECT_THAT(Grant("large"), ElementsAre(1, 2));
  EXPECT_THAT(Grant("large"), ElementsAre(3, 4));
  EXPECT_THAT(Grant("small"), ElementsAre(5, 6));
  EXPECT_THAT(Grant("large"), ElementsAre(7, 8));
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
}

TEST_F(SchedulerTest, SingleTrialThatDoesNotFitFails) {
  for (TrialKey key = 1; key <= 3; ++key) Add(key, 1);
  scheduler_.Register("w", 3, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(1, 2, 3));
  for (TrialKey key = 1; key <= 3; ++key) Finish(key, v1::Outcome::OUT_OF_MEMORY);
  for (TrialKey key = 1; key <= 3; ++key) {
    EXPECT_THAT(Grant("w"), ElementsAre(key));
    const TrialChange change = Finish(key, v1::Outcome::OUT_OF_MEMORY, "9 GiB").trials.at(0);
    EXPECT_EQ(change.to, v1::FAILED);
    EXPECT_THAT(change.reason, HasSubstr("is too small even for this trial alone (9 GiB)"));
  }
}

TEST_F(SchedulerTest, RestoredLeaseKeepsItsSize) {
  // One of four trials is left. It was not alone when memory ran out.
  Scheduler restored({}, 8);
  restored.RestoreLease(7, "w", 4, {{.key = 1}}, {}, {}, now_);
  EXPECT_EQ(restored.Finish(1, 7, v1::Outcome::OUT_OF_MEMORY, 0, "", now_)->trials[0].to,
            v1::QUEUED);
}

TEST_F(SchedulerTest, WorkerGetsPacksOfItsMeasuredSize) {
  for (TrialKey key = 1; key <= 6; ++key) Add(key, 1);
  scheduler_.Register("w", 8, now_);
  scheduler_.SetCapacity("w", "shape", 2);
  scheduler_.SetCapacity("w", "another", 1);
  EXPECT_THAT(Grant("w"), ElementsAre(1, 2));
  // Also after it registered again.
  scheduler_.Register("w", 8, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(3, 4));
}

TEST_F(SchedulerTest, OwnersOfEqualPriorityTakeTurns) {
  for (TrialKey key = 1; key <= 3; ++key) Add(key, key);
  Add(4, 4, 0, 0, "bob");
  scheduler_.Register("w", 1, now_);
  EXPECT_THAT(Grant("w"), ElementsAre(1));
  EXPECT_THAT(scheduler_.WhyWaiting(3, now_),
              HasSubstr("waits for its owner's fair share: ada runs 1 and bob, who goes first, 0 "
                        "models; it is behind 1 pack of its owner"));
  EXPECT_THAT(Grant("w"), ElementsAre(4));
  EXPECT_THAT(scheduler_.WhyWaiting(3, now_), HasSubstr("waits for 1 pack that ada submitted"));
  EXPECT_THAT(Grant("w"), ElementsAre(2));
}

TEST_F(SchedulerTest, PreemptsTheLongestRunningLowestPriority) {
  Add(1, 1, 1);
  Add(2, 2, 0);
  Add(3, 3, 0);
  scheduler_.Register("middle", 1, now_);
  scheduler_.Register("old", 1, now_);
  scheduler_.Register("young", 1, now_);
  EXPECT_THAT(Grant("middle"), ElementsAre(1));
  EXPECT_THAT(Grant("old"), ElementsAre(2));
  const Token old_lease = token_;
  After(absl::Seconds(10));
  EXPECT_THAT(Grant("young"), ElementsAre(3));
  const Token young_lease = token_;
  Add(4, 4, /*priority=*/5);
  const auto preempted = [&](const std::string& worker, Token token) {
    return Beat(worker, token).preempted;
  };
  const auto beat_all = [&] {
    EXPECT_EQ(preempted("middle", old_lease - 1), "");
    EXPECT_EQ(preempted("old", old_lease), "");
    EXPECT_EQ(preempted("young", young_lease), "");
  };
  scheduler_.Tick(now_);
  EXPECT_EQ(preempted("old", old_lease), "");
  EXPECT_EQ(scheduler_.NextDeadline(), now_ + absl::Seconds(20)) << "when middle expires";
  beat_all();
  After(absl::Seconds(29));
  beat_all();
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.NextDeadline(), now_ + absl::Seconds(21)) << "when the old may be preempted";
  After(absl::Seconds(21));
  scheduler_.Tick(now_);
  EXPECT_EQ(preempted("old", old_lease),
            "preempted for priority 5, which goes before 0: 1 such pack waits and no worker is "
            "free");
  EXPECT_EQ(preempted("young", young_lease), "") << "one is enough";
  EXPECT_THAT(scheduler_.WhyWaiting(4, now_), HasSubstr("1 lease is being preempted"));
  const Decisions decisions = scheduler_.Release("old", old_lease, "as told");
  EXPECT_EQ(decisions.trials[0].actor, "scheduler");
  EXPECT_THAT(decisions.trials[0].reason, HasSubstr("old gave lease 2 back: preempted for"));
  EXPECT_EQ(decisions.trials[0].past.preemptions, 1);
  EXPECT_THAT(Grant("old"), ElementsAre(4));
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
}

TEST_F(SchedulerTest, PreemptsOnlyForAHigherPriorityWithoutFreeWorkers) {
  Add(1, 1, 0);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  Add(2, 2, 0);
  for (int i = 0; i < 10; ++i) {
    After(absl::Seconds(20));
    EXPECT_EQ(Beat("w").preempted, "");
    scheduler_.Tick(now_);
  }
  scheduler_.Register("free", 1, now_);
  Add(3, 3, 5);
  scheduler_.Tick(now_);
  EXPECT_EQ(Beat("w").preempted, "");
}

TEST_F(SchedulerTest, TrialIsPreemptedAtMostThreeTimes) {
  Add(1, 1, 0);
  scheduler_.Register("w", 1, now_);
  for (TrialKey other = 10; other < 20; ++other) {
    const bool expected = other < 13;
    Grant("w");
    Add(other, other, 5);
    for (int i = 0; i < 4; ++i) {
      After(absl::Seconds(20));
      Beat("w");
      scheduler_.Tick(now_);
    }
    EXPECT_EQ(!Beat("w").preempted.empty(), expected) << other;
    if (!expected) break;
    scheduler_.Release("w", token_, "");
    EXPECT_THAT(Grant("w"), ElementsAre(other));
    Finish(other, v1::Outcome::COMPLETED);
  }
}

TEST_F(SchedulerTest, RetriedTrialKeepsItsAttempts) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  TrialPast past = Finish(1, v1::Outcome::FAILED_PERMANENTLY, "loss is NaN").trials[0].past;
  past.failures = 2;
  past.pack_limit = 2;
  const Decisions decisions =
      scheduler_.Retry({.key = 1, .pack = 1, .checkpoint_step = 70, .past = past}, {}, v1::FAILED,
                       "user ada", "retried by ada");
  ASSERT_EQ(decisions.trials.size(), 1u);
  EXPECT_EQ(decisions.trials[0].from, v1::FAILED);
  EXPECT_EQ(decisions.trials[0].to, v1::QUEUED);
  EXPECT_EQ(decisions.trials[0].actor, "user ada");
  EXPECT_EQ(decisions.trials[0].past.attempt, 1);
  EXPECT_EQ(decisions.trials[0].past.failures, 0);
  EXPECT_EQ(decisions.trials[0].past.pack_limit, 0);
  EXPECT_THAT(scheduler_.Retry({.key = 1, .pack = 1}, {}, v1::FAILED, "", "").trials, IsEmpty());
  const Decisions granted = *scheduler_.Grant("w", now_);
  EXPECT_EQ(granted.trials[0].past.attempt, 2);
  EXPECT_EQ(granted.trials[0].resumed_from_step, 70);
}

TEST_F(SchedulerTest, PermanentFailureIsFinal) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  EXPECT_EQ(Finish(1, v1::Outcome::FAILED_PERMANENTLY, "loss is NaN").trials[0].to, v1::FAILED);
}

TEST_F(SchedulerTest, OutcomeOfALostLeaseIsIgnored) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  After(absl::Seconds(31));
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.Finish(1, token_, v1::Outcome::COMPLETED, 0, "", now_).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(scheduler_.queued(), 1);
}

TEST_F(SchedulerTest, CancelledTrialsAreReportedAndTheLeaseStays) {
  Add(1, 1);
  Add(2, 1);
  scheduler_.Register("w", 2, now_);
  Grant("w");
  const Decisions cancelled = scheduler_.Cancel(1, "user ada", "not needed");
  EXPECT_EQ(cancelled.trials[0].reason, "not needed");
  EXPECT_EQ(cancelled.trials[0].actor, "user ada");
  const LeaseDirective directive = Beat("w");
  EXPECT_FALSE(directive.lost);
  EXPECT_THAT(directive.cancelled, ElementsAre(1));
  EXPECT_EQ(Finish(2, v1::Outcome::COMPLETED).trials[0].to, v1::SUCCEEDED);
  EXPECT_THAT(scheduler_.Cancel(1, "user ada", "again").trials, IsEmpty());
}

TEST_F(SchedulerTest, WorkersToTellHaveANewDirective) {
  for (TrialKey key = 1; key <= 4; ++key) Add(key, key);
  for (const char* worker : {"a", "b", "c"}) {
    scheduler_.Register(worker, 1, now_);
    Grant(worker);
  }
  EXPECT_THAT(scheduler_.TakeWorkersToTell(), IsEmpty());
  scheduler_.Cancel(2, "user ada", "not needed");
  scheduler_.Cancel(4, "user ada", "it waits: no worker has it");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
  EXPECT_THAT(scheduler_.TakeWorkersToTell(), ElementsAre("b"));
  EXPECT_THAT(scheduler_.TakeWorkersToTell(), IsEmpty()) << "said once";
  scheduler_.Cancel(3, "user ada", "not needed");
  scheduler_.Release("c", token_, "done");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
  EXPECT_THAT(scheduler_.TakeWorkersToTell(), IsEmpty()) << "the lease is gone";
}

TEST_F(SchedulerTest, DirectiveLastsAsLongAsItsLease) {
  for (TrialKey key = 1; key <= 2; ++key) Add(key, 1);
  scheduler_.Register("w", 2, now_);
  Grant("w");
  EXPECT_FALSE(scheduler_.HasDirective("w"));
  for (TrialKey key = 1; key <= 2; ++key) {
    scheduler_.Cancel(key, "user ada", "not needed");
    scheduler_.TakeWorkersToTell();
    EXPECT_TRUE(scheduler_.HasDirective("w")) << "the worker may not have heard";
  }
  EXPECT_FALSE(scheduler_.HasDirective("v"));
  scheduler_.Release("w", token_, "done");
  EXPECT_FALSE(scheduler_.HasDirective("w"));
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
}

// Its answer is held: it is silent because the server wants it so.
TEST_F(SchedulerTest, WorkerWithAHeldHeartbeatIsFree) {
  for (const char* worker : {"busy", "free"}) scheduler_.Register(worker, 1, now_);
  Add(1, 1, /*priority=*/0);
  Grant("busy");
  const auto preempts_after = [&](absl::Duration silence) {
    Beat("busy");
    EXPECT_TRUE(scheduler_.Heartbeat("free", {}, now_).ok());
    scheduler_.ExpectSilence("free", absl::Seconds(4));
    After(silence);
    scheduler_.Tick(now_);
    return Beat("busy").preempted != "";
  };
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(preempts_after(absl::Seconds(8)));
  Add(2, 2, /*priority=*/5);
  EXPECT_FALSE(preempts_after(absl::Seconds(9)));
  EXPECT_TRUE(preempts_after(absl::Seconds(10)));
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

TEST_F(SchedulerTest, UnknownWorkersMustRegister) {
  Add(1, 1);
  EXPECT_EQ(scheduler_.Grant("w", now_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(scheduler_.Heartbeat("w", {}, now_).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(scheduler_.WhyWaiting(1, now_), "waits for a worker: none is connected");
}

TEST_F(SchedulerTest, RestoredLeaseGetsAFullDuration) {
  Scheduler restored({}, 8);
  restored.RestoreLease(7, "w", 1, {{.key = 1, .past = {.attempt = 1}}}, {}, {}, now_);
  EXPECT_EQ(restored.NextDeadline(), now_ + absl::Seconds(30));
  restored.Register("w", 1, now_);
  EXPECT_EQ(restored.Heartbeat("w", {7}, now_), absl::OkStatus());
  EXPECT_FALSE(restored.DirectiveOf("w", 7).lost);
  EXPECT_TRUE(restored.Finish(1, 7, v1::Outcome::COMPLETED, 0, "", now_).ok());
}

TEST_F(SchedulerTest, AHundredThousandQueuedTrialsAreLeasedInOrder) {
  for (TrialKey key = 1; key <= 100'000; ++key) Add(key, /*pack=*/key);
  scheduler_.Register("w", 1, now_);
  for (TrialKey key = 1; key <= 1000; ++key) ASSERT_THAT(Grant("w"), ElementsAre(key));
}

// Two experiments; "high" goes first because of its priority.
class DedicatedWorkerTest : public SchedulerTest {
 protected:
  DedicatedWorkerTest() {
    Add(1, "high", 9);
    Add(2, "low", 0);
    Add(3, "low", 0);
  }
  void Add(TrialKey key, const std::string& experiment, int32_t priority) {
    scheduler_.Add({.key = key, .pack = key},
                   {.priority = priority, .owner = "ada", .shape = "s", .experiment = experiment});
  }
};

TEST_F(DedicatedWorkerTest, TakesOnlyItsExperiment) {
  scheduler_.Register("w", 1, now_, "low");
  EXPECT_THAT(Grant("w"), ElementsAre(2));
  Finish(2, v1::Outcome::COMPLETED);
  EXPECT_TRUE(scheduler_.HasRunnable("w", now_));
  EXPECT_THAT(Grant("w"), ElementsAre(3));
  Finish(3, v1::Outcome::COMPLETED);
  EXPECT_FALSE(scheduler_.HasRunnable("w", now_)) << "it would be asked in a loop";
  EXPECT_THAT(Grant("w"), IsEmpty());
  EXPECT_EQ(scheduler_.WhyNothing("w", now_), "no trial of low can be leased now");
  EXPECT_EQ(scheduler_.WhyWaiting(1, now_),
            "waits for a worker: the one that is connected trains other experiments only");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
}

TEST_F(DedicatedWorkerTest, IsNotPreemptedForOtherExperiments) {
  scheduler_.Register("w", 1, now_, "low");
  EXPECT_THAT(Grant("w"), ElementsAre(2));
  for (int i = 0; i < 4; ++i) {
    After(absl::Seconds(20));
    scheduler_.Tick(now_);
    EXPECT_EQ(Beat("w").preempted, "");
  }
  EXPECT_EQ(scheduler_.NextDeadline(), now_ + absl::Seconds(30)) << "its lease alone";
}

TEST_F(DedicatedWorkerTest, RestoredLeaseIsNotPreempted) {
  scheduler_.RestoreLease(7, "w", 1, {{.key = 4, .pack = 4}},
                          {.owner = "ada", .shape = "s", .experiment = "low"}, {}, now_);
  scheduler_.Register("w", 1, now_, "low");
  token_ = 7;
  for (int i = 0; i < 4; ++i) {
    Beat("w");
    After(absl::Seconds(20));
    scheduler_.Tick(now_);
    EXPECT_EQ(Beat("w").preempted, "");
  }
}

TEST_F(DedicatedWorkerTest, DoesNotCountAsFreeForOthers) {
  scheduler_.Register("general", 1, now_);
  EXPECT_THAT(Grant("general"), ElementsAre(1));
  Finish(1, v1::Outcome::COMPLETED);
  EXPECT_THAT(Grant("general"), ElementsAre(2));
  Add(5, "high", 9);
  for (int i = 0; i < 4; ++i) {
    After(absl::Seconds(20));
    Beat("general");
  }
  scheduler_.Register("idle", 1, now_, "done");
  scheduler_.Tick(now_);
  EXPECT_NE(Beat("general").preempted, "");
}

TEST_F(SchedulerTest, CountsWantedWorkersByPacks) {
  for (TrialKey key = 1; key <= 65; ++key) Add(key, 1);
  for (TrialKey key = 101; key <= 103; ++key) Add(key, 2, /*priority=*/4, /*step=*/100);
  // The fixture has one shape for all packs.
  const WantedPacks alone = scheduler_.Wanted(1).at("shape");
  EXPECT_EQ(alone.packs, 68);
  EXPECT_EQ(alone.trials, 68);
  EXPECT_EQ(alone.priority, 4);
  EXPECT_EQ(scheduler_.Wanted(30).at("shape").packs, 3 + 1);
  scheduler_.Register("w", 30, now_);
  Grant("w");
  EXPECT_EQ(scheduler_.Wanted(30).at("shape").packs, 3) << "what runs is not wanted";
}

TEST_F(SchedulerTest, DelayedTrialsWantNoWorker) {
  Add(1, 1);
  scheduler_.Register("w", 1, now_);
  Grant("w");
  Finish(1, v1::Outcome::FAILED_TEMPORARILY, "the disk is full");
  EXPECT_TRUE(scheduler_.Wanted(1).empty()) << "it waits for its back-off";
  After(absl::Minutes(10));
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.Wanted(1).at("shape").packs, 1);
}

TEST_F(SchedulerTest, SplitPacksWantMoreWorkers) {
  for (TrialKey key = 1; key <= 8; ++key) Add(key, 1);
  scheduler_.Register("w", 8, now_);
  Grant("w");
  for (TrialKey key = 1; key <= 8; ++key) Finish(key, v1::Outcome::OUT_OF_MEMORY);
  EXPECT_EQ(scheduler_.Wanted(8).at("shape").packs, 2);
}

TEST_F(SchedulerTest, IdleWorkersAreAliveWithoutATrial) {
  Add(1, 1);
  scheduler_.Register("busy", 1, now_);
  scheduler_.Register("idle", 1, now_);
  Grant("busy");
  EXPECT_TRUE(scheduler_.IsIdle("idle", now_));
  EXPECT_FALSE(scheduler_.IsIdle("busy", now_));
  EXPECT_EQ(scheduler_.BusyWorkers(now_), 1);
  EXPECT_EQ(scheduler_.fleet_size(), 2);
  After(absl::Minutes(1));
  EXPECT_FALSE(scheduler_.IsIdle("idle", now_));
  EXPECT_EQ(scheduler_.BusyWorkers(now_), 0);
}

// Otherwise no worker would be started for packs that an idle one never takes.
TEST_F(SchedulerTest, WorkersOfAnotherExperimentAreNotIdle) {
  scheduler_.Register("sort", 1, now_, "sort-1");
  scheduler_.Register("copy", 1, now_, "copy-2");
  scheduler_.Register("any", 1, now_);
  EXPECT_TRUE(scheduler_.IsIdle("sort", now_, "sort-1"));
  EXPECT_FALSE(scheduler_.IsIdle("copy", now_, "sort-1"));
  EXPECT_TRUE(scheduler_.IsIdle("any", now_, "sort-1"));
  EXPECT_FALSE(scheduler_.IsIdle("sort", now_));
  EXPECT_TRUE(scheduler_.IsIdle("any", now_));
}

TEST_F(SchedulerTest, SilentWorkersAreForgottenAfterAnHour) {
  scheduler_.Register("w", 1, now_);
  scheduler_.Tick(now_);
  After(absl::Minutes(59));
  scheduler_.Tick(now_);
  EXPECT_NE(scheduler_.FindSession("w"), nullptr);
  After(absl::Minutes(3));
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.FindSession("w"), nullptr);
}

TEST_F(SchedulerTest, FleetSizeCountsLiveWorkers) {
  for (const char* worker : {"a", "b", "b"}) scheduler_.Register(worker, 1, now_);
  EXPECT_EQ(scheduler_.fleet_size(), 2);
  scheduler_.Tick(now_);
  After(absl::Seconds(29));
  ASSERT_TRUE(scheduler_.Heartbeat("a", {}, now_).ok());
  After(absl::Seconds(2));
  EXPECT_EQ(scheduler_.fleet_size(), 2) << "counted once a second, by Tick";
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.fleet_size(), 1);
  scheduler_.Register("b", 1, now_);
  EXPECT_EQ(scheduler_.fleet_size(), 2);
}

TEST_F(SchedulerTest, NewOwnerHasTheShareOfAnExperiment) {
  for (TrialKey key = 1; key <= 4; ++key) {
    scheduler_.Add({.key = key, .pack = key < 3 ? 1 : 2},
                   {.owner = key < 3 ? "sam" : "ada",
                    .shape = "shape",
                    .experiment = key < 3 ? "of-sam-1" : "of-ada-1"});
  }
  scheduler_.Register("w", 1, now_);
  ASSERT_THAT(Grant("w"), ElementsAre(1));
  scheduler_.ChangeOwner("of-sam-1", "ada");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
  EXPECT_EQ(scheduler_.WhyWaiting(3, now_),
            "waits for 1 pack that ada submitted before; 1 worker is connected, 1 trial runs");
  scheduler_.ChangeOwner("of-sam-1", "sam");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
  EXPECT_THAT(Grant("w"), ElementsAre(3)) << "ada, who runs nothing, goes first";
}

TEST_F(SchedulerTest, DrainedWorkerGivesBackItsLease) {
  Add(1, 1);
  Add(2, 2);
  scheduler_.Register("w", 1, now_);
  scheduler_.Register("other", 1, now_);
  ASSERT_THAT(Grant("w"), ElementsAre(1));
  scheduler_.HoldBack("w", "drained by ada: new disks");
  EXPECT_THAT(scheduler_.TakeWorkersToTell(), ElementsAre("w"));
  EXPECT_EQ(Beat("w").preempted, "drained by ada: new disks");
  EXPECT_FALSE(scheduler_.HasRunnable("w", now_));
  EXPECT_TRUE(scheduler_.HasRunnable("other", now_));
  const Decisions given_back = scheduler_.Release("w", token_, "");
  EXPECT_EQ(given_back.trials.at(0).reason, "w gave lease 1 back: drained by ada: new disks");
  EXPECT_EQ(scheduler_.CheckInvariants(), absl::OkStatus());
  EXPECT_THAT(Grant("w"), IsEmpty());
  EXPECT_EQ(scheduler_.WhyNothing("w", now_), "this worker is drained by ada: new disks");
  EXPECT_FALSE(scheduler_.IsIdle("w", now_));
  scheduler_.Unregister("other");
  EXPECT_EQ(scheduler_.WhyWaiting(2, now_), "waits for a worker: w is drained by ada: new disks");
  scheduler_.Unregister("w");
  scheduler_.Register("w", 1, now_);
  EXPECT_THAT(Grant("w"), IsEmpty()) << "also after a restart";
  scheduler_.HoldBack("w", "");
  EXPECT_THAT(Grant("w"), ElementsAre(1));
}

TEST_F(SchedulerTest, PausedQueueStartsNothing) {
  Add(1, 1);
  Add(2, 2, /*priority=*/5);
  scheduler_.Register("w", 1, now_);
  ASSERT_THAT(Grant("w"), ElementsAre(2));
  scheduler_.HoldBack("", "paused by ada");
  Add(3, 3, /*priority=*/9);
  After(absl::Minutes(10));
  EXPECT_EQ(Beat("w").preempted, "");
  scheduler_.Tick(now_);
  EXPECT_EQ(Beat("w").preempted, "") << "nothing could start in its place";
  EXPECT_FALSE(scheduler_.HasRunnable(now_));
  EXPECT_THAT(scheduler_.Wanted(1), IsEmpty());
  Finish(2, v1::Outcome::COMPLETED);
  EXPECT_THAT(Grant("w"), IsEmpty());
  EXPECT_EQ(scheduler_.WhyNothing("w", now_), "the queue is paused by ada");
  EXPECT_EQ(scheduler_.WhyWaiting(1, now_), "waits: the queue is paused by ada");
  scheduler_.HoldBack("", "");
  EXPECT_THAT(Grant("w"), ElementsAre(3));
}

TEST_F(SchedulerTest, SilentWorkerIsLostOnce) {
  for (const char* worker : {"idle", "lively", "stopped"}) scheduler_.Register(worker, 1, now_);
  scheduler_.Unregister("stopped");
  const auto lost_after = [&](absl::Duration time) {
    After(time);
    EXPECT_TRUE(scheduler_.Heartbeat("lively", {}, now_).ok());
    return scheduler_.Tick(now_).lost_workers;
  };
  EXPECT_THAT(lost_after(absl::Seconds(29)), IsEmpty());
  EXPECT_THAT(lost_after(absl::Seconds(2)), ElementsAre("idle"));
  EXPECT_THAT(lost_after(absl::Seconds(2)), IsEmpty());
  ASSERT_TRUE(scheduler_.Heartbeat("idle", {}, now_).ok()) << "it is back";
  EXPECT_THAT(lost_after(absl::Seconds(29)), IsEmpty());
  EXPECT_THAT(lost_after(absl::Seconds(2)), ElementsAre("idle"));
}

TEST_F(SchedulerTest, PauseOfTheServerLosesNoIdleWorker) {
  scheduler_.Register("w", 1, now_);
  scheduler_.Hear(now_);
  scheduler_.Tick(now_);
  EXPECT_EQ(scheduler_.NextLoss(), now_ + absl::Milliseconds(1500)) << "Hear is due";
  After(absl::Minutes(5));
  scheduler_.Hear(now_);
  EXPECT_THAT(scheduler_.Tick(now_).lost_workers, IsEmpty());
  for (int i = 0; i < 9; ++i) {
    After(absl::Seconds(3));
    scheduler_.Hear(now_);
  }
  EXPECT_THAT(scheduler_.Tick(now_).lost_workers, ElementsAre("w"));
  EXPECT_EQ(scheduler_.NextLoss(), absl::InfiniteFuture()) << "nobody can be lost";
  After(absl::Minutes(5));
  scheduler_.Hear(now_);
  EXPECT_FALSE(scheduler_.IsAlive("w", now_)) << "a time without workers is no pause";
}

TEST_F(SchedulerTest, StoppedWorkerIsNotAlive) {
  scheduler_.Register("w", 1, now_);
  EXPECT_TRUE(scheduler_.IsAlive("w", now_));
  scheduler_.Unregister("w");
  EXPECT_FALSE(scheduler_.IsAlive("w", now_));
}

}  // namespace
}  // namespace lengthwise::server
