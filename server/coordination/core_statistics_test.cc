// The core's statistics for monitoring.
#include <map>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/samples.h"
#include "proto/outcome_reasons.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Statistics = Statistics;

class CoreStatisticsTest : public testing::Test {
 protected:
  CoreStatisticsTest() {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w", 2), absl::OkStatus());
  }

  Statistics Read() { return coordinator_->GetStatistics(); }
  // Labels counted at least once.
  static std::map<std::string, int64_t> Counted(std::map<std::string, int64_t> counts) {
    std::erase_if(counts, [](const auto& count) { return count.second == 0; });
    return counts;
  }
  // Sends a heartbeat with the loss of a lease's first trial.
  void Report(const v1::Lease& lease, float loss, const v1::WorkerMeasurements& measurements = {}) {
    v1::SynchronizeRequest request = coordinator_.CallOf("w", {lease});
    v1::TrialProgress& progress = *request.add_progress();
    progress.set_trial(lease.trials(0).trial());
    progress.set_attempt(lease.trials(0).attempt());
    progress.set_loss(loss);
    *request.mutable_measurements() = measurements;
    PostCall(*coordinator_, request, "anonymous", [](const auto&) {});
    coordinator_->loop().Flush();
  }

  TestCoordinator coordinator_;
};

TEST_F(CoreStatisticsTest, DecisionsAreCountedByKindFromZero) {
  EXPECT_THAT(Counted(Read().decided.decisions), IsEmpty());
  EXPECT_THAT(Read().decided.decisions, SizeIs(7));
  coordinator_.Create("sort", 2, 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 10, {1, 0.5}));
  ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(1).trial()).ok());
  EXPECT_THAT(Counted(Read().decided.decisions),
              ElementsAre(Pair("lease_granted", 1), Pair("trial_cancelled", 1),
                          Pair("trial_started", 2), Pair("trial_succeeded", 1)));
  EXPECT_EQ(monitoring::Count(Read().lease_trials), 1);
  EXPECT_EQ(Read().lease_trials.sum(), 2);
}

TEST_F(CoreStatisticsTest, QueueAgeFollowsTheOldestTrial) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  coordinator_.Advance(absl::Seconds(7));
  EXPECT_EQ(Read().oldest_queued_seconds, 7);
  ASSERT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 10, {1, 0.5}));
  EXPECT_EQ(Read().oldest_queued_seconds, 0);
  // An old experiment's new trials have not waited for ten days.
  coordinator_.Advance(absl::Hours(240));
  ASSERT_TRUE(coordinator_.Extend(experiment, {7}).ok());
  coordinator_.Advance(absl::Seconds(3));
  EXPECT_EQ(Read().oldest_queued_seconds, 3);
  // Neither has a retried trial.
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  coordinator_.Advance(absl::Hours(240));
  ASSERT_TRUE(coordinator_.Retry(experiment, {v1::CANCELLED}).ok());
  coordinator_.Advance(absl::Seconds(5));
  EXPECT_EQ(Read().oldest_queued_seconds, 5);
}

TEST_F(CoreStatisticsTest, RetriesAreCountedByReason) {
  const std::string experiment = coordinator_.Create("sort", 1, 2);
  const auto retries = [&] { return Counted(Read().decided.retries); };
  v1::Lease lease = coordinator_.Acquire("w");
  coordinator_.Release("w", lease);
  EXPECT_THAT(retries(), ElementsAre(Pair("release", 2)));
  lease = coordinator_.Acquire("w");
  coordinator_.Advance(absl::Seconds(31));
  EXPECT_THAT(retries(), ElementsAre(Pair("lease_expiry", 2), Pair("release", 2)));
  EXPECT_EQ(Read().lease_expiries, 1);
  ASSERT_EQ(coordinator_.Register("w", 2), absl::OkStatus());
  lease = coordinator_.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(2));
  ASSERT_TRUE(
      coordinator_.Send(lease, {OutcomeEvent(lease, 0, 1, 0, v1::Outcome::OUT_OF_MEMORY, "full")})
          .ok());
  ASSERT_TRUE(
      coordinator_
          .Send(lease, {OutcomeEvent(lease, 1, 1, 0, v1::Outcome::FAILED_TEMPORARILY, "bad day")})
          .ok());
  EXPECT_THAT(retries(), ElementsAre(Pair("failure", 1), Pair("lease_expiry", 2),
                                     Pair("out_of_memory", 1), Pair("release", 2)));
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_TRUE(coordinator_.Retry(experiment, {v1::CANCELLED}).ok());
  EXPECT_EQ(retries()["user"], 2);
}

TEST_F(CoreStatisticsTest, FailuresAreCountedByReason) {
  coordinator_.Create("sort", 1, 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_
                  .Send(lease, {OutcomeEvent(lease, 0, 1, 7, v1::Outcome::FAILED_PERMANENTLY,
                                             absl::StrCat(kLossNotFinite, "nan at step 7"))})
                  .ok());
  ASSERT_TRUE(coordinator_
                  .Send(lease, {OutcomeEvent(lease, 1, 1, 7, v1::Outcome::FAILED_PERMANENTLY,
                                             "there is no such network")})
                  .ok());
  EXPECT_THAT(Counted(Read().decided.failures),
              ElementsAre(Pair("loss_not_finite", 1), Pair("refused", 1)));
}

TEST_F(CoreStatisticsTest, RunningTrialsAreShownWhileTheyRun) {
  EXPECT_THAT(Read().running_trials, IsEmpty());
  coordinator_.Create("sort", 1, 3);
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_THAT(Read().running_trials, SizeIs(2));
  Report(lease, 0.75);
  ASSERT_TRUE(
      coordinator_.Send(lease, {AccuraciesEvent(lease, 0, 1, 10, {1, 0.5}, /*final=*/false)}).ok());
  const RunningTrial trial = Read().running_trials[0];
  EXPECT_EQ(trial.experiment_id, "sort-1");
  EXPECT_EQ(trial.trial_id, "lr0-seed0");
  EXPECT_EQ(trial.worker, "w");
  EXPECT_EQ(trial.task, "bucket_sort");
  EXPECT_EQ(trial.progress.loss(), 0.75);
  // This test's specification has no seen lengths.
  EXPECT_EQ(trial.unseen_accuracy, 0.75);
  EXPECT_EQ(Read().running_experiments.at("sort-1").running(), 2);
  EXPECT_EQ(Read().running_experiments.at("sort-1").queued(), 1);

  ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(1).trial()).ok());
  EXPECT_THAT(Read().running_trials, SizeIs(1));
  coordinator_.Release("w", lease);
  EXPECT_THAT(Read().running_trials, IsEmpty());
  EXPECT_THAT(Read().running_experiments, IsEmpty());
  // Progress of an attempt that has ended.
  Report(lease, 0.5);
  EXPECT_THAT(Read().running_trials, IsEmpty());
}

TEST_F(CoreStatisticsTest, RestartedServerShowsRunningTrials) {
  coordinator_.Create("sort", 1, 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("w", 2), absl::OkStatus());
  Report(lease, 0.25);
  ASSERT_THAT(Read().running_trials, SizeIs(2));
  EXPECT_EQ(Read().running_trials[0].encoding, "none");
  EXPECT_EQ(Read().running_trials[0].progress.loss() + Read().running_trials[1].progress.loss(),
            0.25);
}

TEST_F(CoreStatisticsTest, WorkersAreShownWhileTheyAreAlive) {
  coordinator_.Create("sort", 1, 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  v1::WorkerMeasurements measurements;
  measurements.set_steps(41);
  // Not a histogram: it is dropped before export.
  measurements.mutable_step_seconds()->add_counts(-1);
  Report(lease, 1, measurements);
  ASSERT_THAT(Read().workers, SizeIs(1));
  EXPECT_EQ(Read().workers[0].worker_id, "w");
  EXPECT_EQ(Read().workers[0].max_pack_size, 2);
  EXPECT_EQ(Read().workers[0].measurements.steps(), 41);
  EXPECT_FALSE(Read().workers[0].measurements.has_step_seconds());
  coordinator_.Advance(absl::Seconds(31));
  EXPECT_THAT(Read().workers, IsEmpty());
}

// Nothing but the worker's silence wakes the server.
TEST_F(CoreStatisticsTest, IdleWorkerThatDiesIsCounted) {
  coordinator_.Close();
  coordinator_.options().scheduler.lease_duration = absl::Milliseconds(200);
  coordinator_.RunClock();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_EQ(Read().lost_workers, 0);
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("stopped"), absl::OkStatus());
  ASSERT_EQ(coordinator_.Stop("stopped"), absl::OkStatus());
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (Read().lost_workers == 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(Read().lost_workers, 1);
  EXPECT_EQ(Read().lease_expiries, 0);
}

TEST_F(CoreStatisticsTest, CommitsAreMeasured) {
  const int64_t before = monitoring::Count(Read().commit_seconds);
  coordinator_.Create("sort", 1, 3);
  const Statistics after = Read();
  EXPECT_GE(monitoring::Count(after.commit_seconds), before + 1);
  EXPECT_EQ(monitoring::Count(after.commit_commands), monitoring::Count(after.commit_seconds));
  EXPECT_EQ(monitoring::Count(after.commit_events), monitoring::Count(after.commit_seconds));
  EXPECT_EQ(after.commit_events.sum(), static_cast<double>(after.events_stored));
  EXPECT_GT(after.commit_seconds.sum(), 0);
  EXPECT_EQ(after.commit_failures, 0);
  EXPECT_GT(after.disk_size_bytes, 0);
  EXPECT_GT(after.disk_free_bytes, 0);
}

TEST(CoordinatorStatistics, FailedCommitsAreCounted) {
  TestCoordinator coordinator(NewDirectory(), /*max_database_bytes=*/512 << 10);
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  int created = 0;
  while (created < 1000 && absl::StartsWith(coordinator.Create("large", 100, 10), "experiments/")) {
    ++created;
  }
  ASSERT_LT(created, 1000);
  EXPECT_EQ(coordinator->GetStatistics().commit_failures, 1);
}

}  // namespace
}  // namespace lengthwise::server
