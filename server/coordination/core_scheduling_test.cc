// Trials that failed, did not fit, were cancelled or preempted, and their histories: through the
// store and through restarts.
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class CoreSchedulingTest : public testing::Test {
 protected:
  CoreSchedulingTest() { EXPECT_EQ(coordinator_.Open(), absl::OkStatus()); }

  void Restart() {
    coordinator_.Close();
    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  }

  void Tell(const v1::Lease& lease, v1::Outcome::Kind kind, const std::string& reason,
            int64_t step = 10) {
    for (int trial = 0; trial < lease.trials_size(); ++trial) {
      const auto response =
          coordinator_.Send(lease, {OutcomeEvent(lease, trial, 1, step, kind, reason)});
      ASSERT_TRUE(response.ok()) << response.status();
      ASSERT_EQ(response->acknowledged_sequence(), 1) << response->detail();
    }
  }

  v1::Trial Get(const std::string& name) { return *coordinator_->reads().GetTrial(name); }

  // "FROM -> TO, actor" of each change of a trial.
  std::vector<std::string> Changes(const std::string& experiment, const std::string& trial) {
    std::vector<std::string> changes;
    for (const v1::Event& event : coordinator_.History(experiment)) {
      if (!event.has_state_change() || event.trial() != trial) continue;
      EXPECT_NE(event.state_change().reason(), "");
      changes.push_back(absl::StrCat(v1::TrialState_Name(event.state_change().from()), " -> ",
                                     v1::TrialState_Name(event.state_change().to()), ", ",
                                     event.state_change().actor()));
    }
    return changes;
  }

  // As the administrator "ada". Without a worker: the queue.
  absl::Status Hold(const std::string& worker) {
    v1::HoldLeasesRequest request;
    request.set_worker(worker);
    request.set_all(worker.empty());
    std::promise<absl::Status> done;
    coordinator_->loop().Post<v1::HoldLeasesResponse>(
        [&] { return coordinator_->leases().Hold(request, "ada"); },
        [&](const auto& response) { done.set_value(response.status()); });
    return done.get_future().get();
  }
  absl::Status Resume(const std::string& worker) {
    v1::ResumeLeasesRequest request;
    request.set_worker(worker);
    request.set_all(worker.empty());
    std::promise<absl::Status> done;
    coordinator_->loop().Post<v1::ResumeLeasesResponse>(
        [&] { return coordinator_->leases().Resume(request); },
        [&](const auto& response) { done.set_value(response.status()); });
    return done.get_future().get();
  }

  TestCoordinator coordinator_;
};

TEST_F(CoreSchedulingTest, LogTellsTheLifeOfTheService) {
  testing::internal::CaptureStderr();
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("stopped"), absl::OkStatus());
  ASSERT_EQ(coordinator_.Stop("stopped"), absl::OkStatus());
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  ASSERT_THAT(coordinator_.Acquire("w").trials(), SizeIs(1));
  coordinator_.Advance(absl::Seconds(31));
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(" INFO worker w of anonymous registered: "));
  EXPECT_THAT(log, HasSubstr(" INFO worker stopped stops\n"));
  EXPECT_THAT(log, HasSubstr(" WARNING lease 1 of w expired after 30s without a heartbeat\n"));
  EXPECT_THAT(log, HasSubstr(" WARNING worker w is lost: it has been silent for 30s\n"));
  EXPECT_THAT(log, Not(HasSubstr("stopped is lost")));
  EXPECT_THAT(log, HasSubstr(" INFO deleted the experiment sort-1 of "));
}

TEST_F(CoreSchedulingTest, CancelledLeaseIsNotLoggedAsLost) {
  testing::internal::CaptureStderr();
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  ASSERT_THAT(coordinator_.Acquire("w").trials(), SizeIs(1));
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  coordinator_.Advance(absl::Seconds(31));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("without a heartbeat")));
}

TEST_F(CoreSchedulingTest, LeasesOfAllPacksFitAMessage) {
  v1::CreateExperimentRequest request;
  v1::ExperimentSpecification& specification = *request.mutable_specification();
  specification.set_name("long");
  for (const double rate : {0.1, 0.2}) specification.add_learning_rates(rate);
  for (uint64_t seed = 0; seed < 40; ++seed) specification.add_seeds(seed);
  for (int32_t length = 1; length <= 100'000; ++length) {
    specification.mutable_evaluation()->add_lengths(length);
  }
  ASSERT_TRUE(coordinator_.TryCreate(request).ok());
  int trials = 0;
  for (const char* worker : {"a", "b", "c", "d"}) {
    ASSERT_EQ(coordinator_.Register(worker, 64), absl::OkStatus());
    const v1::Lease lease = coordinator_.Acquire(worker);
    EXPECT_LE(lease.ByteSizeLong(), 8 << 20);
    trials += lease.trials_size();
  }
  EXPECT_EQ(trials, 80) << "of both packs";
}

TEST_F(CoreSchedulingTest, DrainedWorkerStaysDrainedOverRestarts) {
  ASSERT_TRUE(absl::IsNotFound(Hold("w"))) << "nobody has seen it";
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  const std::string experiment = coordinator_.Create("sort", 2, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(1));
  ASSERT_EQ(Hold("w"), absl::OkStatus());
  Restart();
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  EXPECT_EQ(coordinator_.Heartbeat("w", {lease})->leases(0).reason(), "drained by ada");
  coordinator_.Release("w", lease);
  EXPECT_THAT(coordinator_.Acquire("w").trials(), IsEmpty());
  EXPECT_EQ(coordinator_->reads().ListWorkers().workers(0).hold(), "drained by ada");
  EXPECT_EQ(coordinator_->GetStatistics().drained_workers, 1);
  ASSERT_EQ(Resume("w"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(Resume("w")));
  Restart();
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  EXPECT_THAT(coordinator_.Acquire("w").trials(), SizeIs(1));
}

TEST_F(CoreSchedulingTest, PausedQueueStaysPausedOverRestarts) {
  ASSERT_EQ(Hold(""), absl::OkStatus());
  Restart();
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  EXPECT_THAT(coordinator_.Acquire("w").trials(), IsEmpty());
  EXPECT_EQ(coordinator_->reads().ListExperiments({})->queue_pause(), "paused by ada");
  EXPECT_EQ(coordinator_->reads().ListWorkers().queue_pause(), "paused by ada");
  EXPECT_TRUE(coordinator_->GetStatistics().queue_paused);
  // A waiting worker gets its lease as soon as the queue goes on.
  v1::SynchronizeRequest call = coordinator_.CallOf("w");
  call.set_wants_lease(true);
  call.mutable_wait()->set_seconds(5);
  auto answer = coordinator_.Later(call);
  coordinator_->loop().Flush();
  ASSERT_EQ(Resume(""), absl::OkStatus());
  EXPECT_THAT(answer.get()->lease().trials(), SizeIs(1));
  EXPECT_EQ(coordinator_->reads().ListExperiments({})->queue_pause(), "");
}

TEST_F(CoreSchedulingTest, RetryRunsOnlyFailedTrialsAgain) {
  coordinator_.Register("w").IgnoreError();
  const std::string experiment = coordinator_.Create("sort", 3, 1);
  const v1::Lease good = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_.Complete(good, 0, 10, {1, 1}));
  const v1::Lease bad = coordinator_.Acquire("w");
  Tell(bad, v1::Outcome::FAILED_PERMANENTLY, "the loss was nan");
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_TRUE(coordinator_->reads().GetExperiment(experiment)->has_end_time());
  ASSERT_TRUE(coordinator_.Summarize(experiment).ok());

  const auto retried = coordinator_.Retry(experiment, {v1::FAILED});
  ASSERT_TRUE(retried.ok()) << retried.status();
  EXPECT_EQ(retried->retried_trials(), 1);
  EXPECT_FALSE(retried->experiment().has_end_time());
  EXPECT_EQ(retried->experiment().trials().queued(), 1);
  EXPECT_EQ(retried->experiment().trials().succeeded(), 1);
  EXPECT_EQ(retried->experiment().trials().cancelled(), 1);
  EXPECT_EQ(coordinator_.Retry(experiment, {v1::FAILED})->retried_trials(), 0) << "it waits";
  EXPECT_EQ(coordinator_->event_log().ReadEvents(experiment, 0, 100)->unfinished_trials, 1);
  const std::string name = bad.trials(0).trial();
  EXPECT_THAT(Get(name).reason(),
              HasSubstr("before: retried by ada; it had failed: w failed: the loss was nan"));

  Restart();
  coordinator_.Register("w").IgnoreError();
  const v1::Lease again = coordinator_.Acquire("w");
  ASSERT_THAT(again.trials(), SizeIs(1));
  EXPECT_EQ(again.trials(0).trial(), name);
  EXPECT_EQ(again.trials(0).attempt(), 2);
  EXPECT_THAT(coordinator_.Acquire("w").trials(), IsEmpty());
  ASSERT_TRUE(coordinator_.Complete(again, 0, 10, {1, 1}));
  EXPECT_TRUE(coordinator_->reads().GetExperiment(experiment)->has_end_time());
  EXPECT_THAT(Changes(experiment, name),
              ElementsAre("QUEUED -> RUNNING, scheduler", "RUNNING -> FAILED, worker w",
                          "FAILED -> QUEUED, user ada", "QUEUED -> RUNNING, scheduler",
                          "RUNNING -> SUCCEEDED, worker w"));
  int outcomes = 0;
  for (const v1::Event& event : coordinator_.History(experiment)) {
    if (event.trial() == name) outcomes += event.has_outcome() ? 1 : 0;
  }
  EXPECT_EQ(outcomes, 1) << "only the accepted attempt's";
  const auto summary = coordinator_.Summarize(experiment);
  int succeeded = 0;
  for (const auto& cell : summary->cells()) succeeded += cell.trials().succeeded();
  EXPECT_EQ(succeeded, 2);
}

TEST_F(CoreSchedulingTest, RetriedTrialResumesFromItsCheckpoint) {
  coordinator_.Register("w").IgnoreError();
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_EQ(coordinator_.Upload(lease, 0, 20, "weights"), absl::OkStatus());
  ASSERT_TRUE(
      coordinator_
          .Send(lease, {PointsEvent(lease, 0, 1, 20), CheckpointEvent(lease, 0, 2, 20, "weights")})
          .ok());
  const std::string name = lease.trials(0).trial();
  ASSERT_TRUE(coordinator_.CancelTrial(name).ok());
  EXPECT_EQ(coordinator_.Retry(name, {v1::FAILED})->retried_trials(), 0);
  EXPECT_EQ(coordinator_.Retry(name, {v1::FAILED, v1::CANCELLED})->retried_trials(), 1);
  const v1::Lease again = coordinator_.Acquire("w");
  ASSERT_THAT(again.trials(), SizeIs(1));
  EXPECT_EQ(again.trials(0).checkpoint_step(), 20);
  EXPECT_EQ(again.trials(0).attempt(), 2);
  // The old lease still learns that its attempt was cancelled, and cannot write.
  EXPECT_THAT(coordinator_.Heartbeat("w", {lease})->leases(0).cancelled_trials(),
              ElementsAre(name));
  EXPECT_EQ(coordinator_.Send(lease, {PointsEvent(lease, 0, 3, 30)})->refusal(),
            v1::StreamEventsResponse::STALE_LEASE);
}

TEST_F(CoreSchedulingTest, RetryOfUnknownNamesIsRefused) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  EXPECT_EQ(coordinator_.Retry("experiments/none-1", {v1::FAILED}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(coordinator_.Retry(experiment + "/trials/none", {v1::FAILED}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(CoreSchedulingTest, RepeatedFailureIsFinalAcrossRestarts) {
  coordinator_.Register("w").IgnoreError();
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease first = coordinator_.Acquire("w");
  const std::string name = first.trials(0).trial();
  Tell(first, v1::Outcome::FAILED_TEMPORARILY, "index 17 is out of range", 40);
  EXPECT_THAT(Get(name).reason(), StartsWith("waits 2s more after failure 1 of 3 allowed; before: "
                                             "w failed: index 17 is out of range"));
  Restart();
  coordinator_.Register("w").IgnoreError();
  coordinator_.Advance(absl::Seconds(2));
  Tell(coordinator_.Acquire("w"), v1::Outcome::FAILED_TEMPORARILY, "index 3 is out of range", 40);
  EXPECT_EQ(Get(name).state(), v1::FAILED);
  EXPECT_THAT(Get(name).reason(), HasSubstr("for the second time in a row, again at step 40"));
  EXPECT_THAT(Changes(experiment, name),
              ElementsAre("QUEUED -> RUNNING, scheduler", "RUNNING -> QUEUED, worker w",
                          "QUEUED -> RUNNING, scheduler", "RUNNING -> FAILED, scheduler"));
}

TEST_F(CoreSchedulingTest, PackIsSplitAcrossARestart) {
  coordinator_.Register("w", 4).IgnoreError();
  const std::string experiment = coordinator_.Create("sort", 1, 4);
  const v1::Lease whole = coordinator_.Acquire("w");
  ASSERT_THAT(whole.trials(), SizeIs(4));
  EXPECT_NE(whole.shape(), "");
  // Restart between the outcome of the first trial and those of the others.
  ASSERT_TRUE(
      coordinator_.Send(whole, {OutcomeEvent(whole, 0, 1, 0, v1::Outcome::OUT_OF_MEMORY, "2 GiB")})
          .ok());
  Restart();
  for (int trial = 1; trial < 4; ++trial) {
    ASSERT_TRUE(
        coordinator_.Send(whole, {OutcomeEvent(whole, trial, 1, 0, v1::Outcome::OUT_OF_MEMORY, "")})
            .ok());
  }
  EXPECT_EQ(coordinator_->reads().GetExperiment(experiment)->trials().queued(), 4);
  Restart();
  coordinator_.Register("w", 4).IgnoreError();
  const v1::Lease half = coordinator_.Acquire("w");
  ASSERT_THAT(half.trials(), SizeIs(2));
  EXPECT_EQ(half.shape(), whole.shape());
  Tell(half, v1::Outcome::OUT_OF_MEMORY, "1 GiB");
  // The other half is not tried as a pair on this worker.
  const v1::Lease single = coordinator_.Acquire("w");
  ASSERT_THAT(single.trials(), SizeIs(1));
  Tell(single, v1::Outcome::OUT_OF_MEMORY, "512 MiB");
  const v1::Trial trial = Get(single.trials(0).trial());
  EXPECT_EQ(trial.state(), v1::FAILED);
  EXPECT_THAT(trial.reason(), HasSubstr("is too small even for this trial alone (512 MiB)"));
}

// The restarted server forgot the limit; the worker did not.
TEST_F(CoreSchedulingTest, ReportedMemoryLimitsTheNextLease) {
  coordinator_.Register("w", 4).IgnoreError();
  coordinator_.Create("sort", 1, 4);
  const v1::Lease whole = coordinator_.Acquire("w");
  ASSERT_THAT(whole.trials(), SizeIs(4));
  Tell(whole, v1::Outcome::FAILED_PERMANENTLY, "the loss was nan");
  coordinator_.Create("sort", 1, 4);
  Restart();
  coordinator_.Register("w", 4).IgnoreError();
  v1::SynchronizeRequest request = coordinator_.CallOf("w");
  request.add_capacities()->set_shape(whole.shape());
  request.mutable_capacities(0)->set_max_pack_size(2);
  std::promise<absl::Status> heard;
  PostCall(*coordinator_, request, "anonymous",
           [&](const absl::StatusOr<v1::SynchronizeResponse>& response) {
             heard.set_value(response.status());
           });
  ASSERT_EQ(heard.get_future().get(), absl::OkStatus());
  EXPECT_THAT(coordinator_.Acquire("w").trials(), SizeIs(2));
}

TEST_F(CoreSchedulingTest, PreemptedTrialResumesAfterwards) {
  coordinator_.Register("w").IgnoreError();
  const std::string low = coordinator_.Create("low", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_name("high");
  request.mutable_specification()->add_learning_rates(0.1);
  request.mutable_specification()->add_seeds(0);
  request.mutable_specification()->set_priority(7);
  ASSERT_TRUE(coordinator_.TryCreate(request).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(coordinator_.Heartbeat("w", {lease})->leases(0).preempted());
    coordinator_.Advance(absl::Seconds(20));
  }
  const auto told = coordinator_.Heartbeat("w", {lease})->leases(0);
  EXPECT_TRUE(told.preempted());
  EXPECT_FALSE(told.lost());
  EXPECT_THAT(told.reason(), HasSubstr("priority 7, which goes before 0"));
  coordinator_.Release("w", lease);
  const std::string name = lease.trials(0).trial();
  EXPECT_THAT(Get(name).reason(), HasSubstr("waits for 1 pack of a higher priority (up to 7"));
  EXPECT_THAT(Get(name).reason(), HasSubstr("before: w gave lease 1 back: preempted for"));
  const v1::Lease high = coordinator_.Acquire("w");
  EXPECT_THAT(high.trials(0).trial(), StartsWith("experiments/high-1/"));
  ASSERT_TRUE(coordinator_.Complete(high, 0, 10, {0.5}));
  EXPECT_EQ(coordinator_.Acquire("w").trials(0).trial(), name);
  EXPECT_THAT(Changes(low, name),
              ElementsAre("QUEUED -> RUNNING, scheduler", "RUNNING -> QUEUED, scheduler",
                          "QUEUED -> RUNNING, scheduler"));
}

TEST_F(CoreSchedulingTest, RestartDecidesAPreemptionAgain) {
  coordinator_.Register("w").IgnoreError();
  coordinator_.Create("low", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_name("high");
  request.mutable_specification()->add_learning_rates(0.1);
  request.mutable_specification()->add_seeds(0);
  request.mutable_specification()->set_priority(7);
  ASSERT_TRUE(coordinator_.TryCreate(request).ok());
  const auto beat_until_preempted = [&] {
    for (int beat = 0; beat < 10; ++beat) {
      const auto told = coordinator_.Heartbeat("w", {lease});
      if (told.ok() && told->leases(0).preempted()) return true;
      coordinator_.Advance(absl::Seconds(20));
    }
    return false;
  };
  ASSERT_TRUE(beat_until_preempted());
  // Before the worker learns of it at its next heartbeat, or gives the lease back.
  Restart();
  EXPECT_FALSE(coordinator_.Heartbeat("w", {lease})->leases(0).lost());
  EXPECT_TRUE(beat_until_preempted());
  coordinator_.Release("w", lease);
  EXPECT_THAT(coordinator_.Acquire("w").trials(0).trial(), StartsWith("experiments/high-1/"));
}

TEST_F(CoreSchedulingTest, TrialWhoseWorkersAreLostFailsAcrossRestarts) {
  const std::string experiment = coordinator_.Create("sort", 1, 2);
  std::string trial;
  // Returns the trial after its next worker is lost.
  const auto lose = [&](const std::string& worker, bool with_checkpoint = false) {
    EXPECT_EQ(coordinator_.Register(worker, 2), absl::OkStatus());
    const v1::Lease lease = coordinator_.Acquire(worker);
    if (trial.empty()) trial = lease.trials(0).trial();
    EXPECT_EQ(lease.trials(0).trial(), trial);
    if (with_checkpoint) {
      EXPECT_EQ(coordinator_.Upload(lease, 0, 10, "a model"), absl::OkStatus());
      EXPECT_EQ(coordinator_
                    .Send(lease, {PointsEvent(lease, 0, 1, 10),
                                  CheckpointEvent(lease, 0, 2, 10, "a model")})
                    ->acknowledged_sequence(),
                2);
    }
    coordinator_.Advance(absl::Seconds(31));
    return Get(trial);
  };
  EXPECT_EQ(lose("a").state(), v1::QUEUED);
  EXPECT_EQ(lose("b", /*with_checkpoint=*/true).state(), v1::QUEUED);
  // The checkpoint was stored before the second loss, which is therefore the first that counts.
  Restart();
  EXPECT_EQ(lose("c").state(), v1::QUEUED);
  Restart();
  const v1::Trial failed = lose("d");
  EXPECT_EQ(failed.state(), v1::FAILED);
  EXPECT_THAT(failed.reason(), HasSubstr("3 workers in a row were lost with this trial"));
  EXPECT_EQ(coordinator_->GetStatistics().decided.failures.at("lost_workers"), 1);
  // Another chance begins anew, after a restart, too.
  ASSERT_EQ(coordinator_.Retry(trial, {v1::FAILED})->retried_trials(), 1);
  Restart();
  EXPECT_EQ(lose("e").state(), v1::QUEUED);
  EXPECT_EQ(lose("f").state(), v1::QUEUED);
}

TEST_F(CoreSchedulingTest, UnfitWorkerFailsNoTrialAndIsShown) {
  const std::string experiment = coordinator_.Create("sort", 1, 30);
  ASSERT_EQ(coordinator_.Register("bad"), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("good"), absl::OkStatus());
  const std::string why = "cannot store a file of examples: No space left on device";
  const v1::Lease lease = coordinator_.Acquire("bad");
  const std::string trial = lease.trials(0).trial();
  coordinator_.Release("bad", lease, why);
  EXPECT_EQ(Get(trial).state(), v1::QUEUED);
  EXPECT_THAT(Get(trial).reason(), HasSubstr(why));
  EXPECT_THAT(coordinator_.Acquire("bad").trials(), IsEmpty());
  const v1::ListWorkersResponse workers = coordinator_->reads().ListWorkers();
  ASSERT_THAT(workers.workers(), SizeIs(2));
  EXPECT_EQ(workers.workers(0).fault(), why);
  EXPECT_EQ(workers.workers(1).fault(), "");
  EXPECT_EQ(coordinator_->GetStatistics().unfit_workers, 1);
  ASSERT_EQ(coordinator_.Stop("bad"), absl::OkStatus());
  EXPECT_EQ(coordinator_->reads().ListWorkers().workers(0).fault(), why) << "why it stopped";
  ASSERT_EQ(coordinator_.Register("bad"), absl::OkStatus());
  EXPECT_EQ(coordinator_->reads().ListWorkers().workers(0).fault(), "") << "it may be mended";
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(coordinator_.Complete(coordinator_.Acquire("good"), 0, 100, {1}));
  }
  EXPECT_EQ(coordinator_->reads().GetExperiment(experiment)->trials().succeeded(), 30);
}

TEST_F(CoreSchedulingTest, ReleasedLeaseNeedNotExpire) {
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease old_lease = coordinator_.Acquire("w");
  const std::string trial = old_lease.trials(0).trial();
  coordinator_.options().release_leases = true;
  Restart();
  coordinator_->loop().Flush();
  EXPECT_EQ(Get(trial).state(), v1::QUEUED);
  EXPECT_EQ(coordinator_->GetStatistics().leases, 0);
  const std::vector<v1::Event> history = coordinator_.History(trial);
  ASSERT_FALSE(history.empty());
  EXPECT_EQ(history.back().state_change().actor(), "scheduler");
  EXPECT_EQ(history.back().state_change().reason(),
            absl::StrCat("lease ", old_lease.fencing_token(),
                         " of w was released when the server started, because its worker has "
                         "ended"));
  // A worker that runs all the same cannot write.
  EXPECT_EQ(coordinator_.Send(old_lease, {PointsEvent(old_lease, 0, 1, 10)})->refusal(),
            v1::StreamEventsResponse::STALE_LEASE);
  ASSERT_EQ(coordinator_.Register("next"), absl::OkStatus());
  const v1::Lease lease = coordinator_.Acquire("next");
  ASSERT_THAT(lease.trials(), SizeIs(1));
  EXPECT_GT(lease.fencing_token(), old_lease.fencing_token());
  EXPECT_EQ(lease.trials(0).attempt(), 2);
}

TEST_F(CoreSchedulingTest, HistoryNamesTheUserWhoCancelled) {
  coordinator_.Register("w").IgnoreError();
  v1::CreateExperimentRequest request;
  request.mutable_specification()->set_name("sort");
  request.mutable_specification()->add_learning_rates(0.1);
  request.mutable_specification()->add_seeds(0);
  request.set_owner("bob");
  ASSERT_TRUE(coordinator_.TryCreate(request).ok());
  const v1::Lease lease = coordinator_.Acquire("w");
  coordinator_.Advance(absl::Seconds(31));
  ASSERT_TRUE(coordinator_.Cancel("experiments/sort-1").ok());
  EXPECT_THAT(Changes("experiments/sort-1", lease.trials(0).trial()),
              ElementsAre("QUEUED -> RUNNING, scheduler", "RUNNING -> QUEUED, scheduler",
                          "QUEUED -> CANCELLED, user bob"));
}

TEST_F(CoreSchedulingTest, CancellationArrivesWithinTwoHeartbeats) {
  coordinator_.Register("w").IgnoreError();
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  // Heartbeats every second, as the server requests.
  absl::Duration since_cancel;
  for (int beat = 0; beat < 5; ++beat) {
    if (beat == 2) {
      ASSERT_TRUE(coordinator_.CancelTrial(lease.trials(0).trial()).ok());
    }
    coordinator_.Advance(absl::Seconds(1));
    if (beat >= 2) since_cancel += absl::Seconds(1);
    const auto told = coordinator_.Heartbeat("w", {lease});
    ASSERT_TRUE(told.ok());
    if (told->leases(0).cancelled_trials_size() > 0) break;
  }
  EXPECT_LE(since_cancel, absl::Seconds(2));
  EXPECT_GT(since_cancel, absl::ZeroDuration());
}

// A worker that stopped while waiting must not be leased a trial that it would not run.
TEST_F(CoreSchedulingTest, RegressionWorkerThatLeftGetsNoLease) {
  for (const char* worker : {"w", "stays"}) {
    ASSERT_EQ(coordinator_.Register(worker), absl::OkStatus());
  }
  v1::SynchronizeRequest request = coordinator_.CallOf("w");
  request.set_wants_lease(true);
  request.mutable_wait()->set_seconds(20);
  std::atomic<bool> left = false;
  auto gone = coordinator_.Later(request, [&] { return left.load(); });
  coordinator_->loop().Flush();
  left = true;
  coordinator_.Create("sort", 1, 1);
  EXPECT_EQ(coordinator_.Acquire("stays").trials_size(), 1);
  coordinator_.Advance(absl::Seconds(21));
  EXPECT_FALSE(gone.get()->has_lease());
}

TEST_F(CoreSchedulingTest, DedicatedWorkerTrainsOnlyItsExperiment) {
  const std::string first = coordinator_.Create("first", 1, 1);
  const std::string second = coordinator_.Create("second", 1, 2);
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    ASSERT_EQ(coordinator_.Register("w", 1, second), absl::OkStatus());
    const v1::Lease lease = coordinator_.Acquire("w");
    ASSERT_EQ(lease.trials_size(), 1);
    EXPECT_THAT(lease.trials(0).trial(), StartsWith(second + "/"));
    ASSERT_TRUE(coordinator_.Complete(lease, 0, 10, {1}));
  }
  EXPECT_EQ(coordinator_.Acquire("w").trials_size(), 0);
  EXPECT_EQ(coordinator_->reads().GetExperiment(first)->trials().queued(), 1);

  // A waiting worker is answered as soon as its own experiment has a trial.
  v1::SynchronizeRequest request = coordinator_.CallOf("w");
  request.set_wants_lease(true);
  request.mutable_wait()->set_seconds(60);
  auto later = coordinator_.Later(request);
  coordinator_.Create("third", 1, 1);
  ASSERT_EQ(coordinator_.Extend(second, {7})->added_trials(), 1);
  const auto answer = later.get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->lease().trials(0).trial(), StartsWith(second + "/"));

  EXPECT_THAT(std::string(coordinator_.Register("w", 1, "second-1").message()),
              StartsWith("worker.experiment: "));
}

TEST_F(CoreSchedulingTest, ReportedMemoryIsListed) {
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  v1::SynchronizeRequest request = coordinator_.CallOf("w");
  request.mutable_measurements()->set_resident_memory_bytes(3);
  request.mutable_measurements()->mutable_gpu()->set_memory_used_bytes(5);
  request.mutable_measurements()->mutable_gpu()->set_memory_total_bytes(8);
  std::promise<absl::Status> heard;
  PostCall(*coordinator_, request, "anonymous",
           [&](const absl::StatusOr<v1::SynchronizeResponse>& response) {
             heard.set_value(response.status());
           });
  ASSERT_EQ(heard.get_future().get(), absl::OkStatus());
  const v1::ListWorkersResponse listed = coordinator_->reads().ListWorkers();
  ASSERT_EQ(listed.workers_size(), 1);
  EXPECT_EQ(listed.workers(0).resident_memory_bytes(), 3);
  EXPECT_EQ(listed.workers(0).gpu_memory_used_bytes(), 5);
  EXPECT_EQ(listed.workers(0).gpu_memory_total_bytes(), 8);
}

// `lengthwise workers` shows the provenance of ListWorkers.
TEST_F(CoreSchedulingTest, ReportedKernelsAreListed) {
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  const auto kernels_after = [&](const std::string& reported) {
    v1::SynchronizeRequest request = coordinator_.CallOf("w");
    request.mutable_measurements()->set_kernels(reported);
    std::promise<absl::Status> heard;
    PostCall(*coordinator_, request, "anonymous",
             [&](const absl::StatusOr<v1::SynchronizeResponse>& response) {
               heard.set_value(response.status());
             });
    EXPECT_EQ(heard.get_future().get(), absl::OkStatus());
    const v1::ListWorkersResponse listed = coordinator_->reads().ListWorkers();
    return listed.workers_size() == 1 ? listed.workers(0).provenance().kernels() : "no worker";
  };
  EXPECT_EQ(kernels_after("auto"), "auto");
  EXPECT_EQ(kernels_after("attention fused 3.05x"), "attention fused 3.05x");
  EXPECT_EQ(kernels_after(""), "attention fused 3.05x") << "a heartbeat without measurements";
  ASSERT_EQ(coordinator_->GetStatistics().workers.size(), 1);
  EXPECT_EQ(coordinator_->GetStatistics().workers[0].provenance.kernels(), "attention fused 3.05x");
}

TEST_F(CoreSchedulingTest, StoppedWorkerIsListedForTenMinutes) {
  ASSERT_EQ(coordinator_.Register("stops"), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("is_lost"), absl::OkStatus());
  ASSERT_EQ(coordinator_.Stop("stops"), absl::OkStatus());
  EXPECT_EQ(coordinator_->GetStatistics().workers.size(), 1) << "no series for a stopped worker";
  coordinator_.Advance(absl::Minutes(9));
  v1::ListWorkersResponse listed = coordinator_->reads().ListWorkers();
  ASSERT_EQ(listed.workers_size(), 2);
  EXPECT_FALSE(listed.workers(0).stopped());
  EXPECT_TRUE(listed.workers(1).stopped());
  EXPECT_FALSE(listed.workers(1).alive());
  coordinator_.Advance(absl::Minutes(2));
  listed = coordinator_->reads().ListWorkers();
  ASSERT_EQ(listed.workers_size(), 1);
  EXPECT_EQ(listed.workers(0).worker_id(), "is_lost");

  ASSERT_EQ(coordinator_.Register("stops"), absl::OkStatus());
  listed = coordinator_->reads().ListWorkers();
  ASSERT_EQ(listed.workers_size(), 2);
  EXPECT_TRUE(listed.workers(1).alive()) << "it came back";
  EXPECT_FALSE(listed.workers(1).stopped());
}

TEST_F(CoreSchedulingTest, HeartbeatWaitsForOnePartOfACommand) {
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  const std::string experiment = coordinator_.Create("sort", 1, 1000);
  const v1::Lease lease = coordinator_.Acquire("w");
  std::vector<std::string> answers;
  // Sends a heartbeat right after the command; both are queued before either is processed.
  const auto with_heartbeat = [&](const std::function<void()>& command) {
    std::promise<void> both_wait;
    std::shared_future<void> go = both_wait.get_future().share();
    PostCall(*coordinator_, coordinator_.CallOf("w"), "anonymous",
             [go](const auto&) { go.wait(); });
    command();
    PostCall(*coordinator_, coordinator_.CallOf("w"), "anonymous", [&](const auto& response) {
      answers.push_back(response.ok() ? "heartbeat" : response.status().ToString());
    });
    both_wait.set_value();
  };
  v1::CancelExperimentRequest cancel;
  cancel.set_name(experiment);
  std::promise<int32_t> cancelled;
  with_heartbeat([&] {
    PostCancel(*coordinator_, cancel, "ada", [&](const auto& answer) {
      answers.push_back("cancel");
      cancelled.set_value(answer.ok() ? answer->trials().cancelled() : -1);
    });
  });
  EXPECT_EQ(cancelled.get_future().get(), 1000);
  EXPECT_THAT(answers, ElementsAre("heartbeat", "cancel"));
  // The running trial is cancelled first, so its worker learns of it soon.
  std::vector<std::string> order;
  for (const v1::Event& event : coordinator_.History(experiment)) {
    if (event.state_change().to() == v1::CANCELLED) order.push_back(event.trial());
  }
  ASSERT_THAT(order, SizeIs(1000));
  EXPECT_EQ(order.front(), lease.trials(0).trial());

  answers.clear();
  v1::RetryTrialsRequest retry;
  retry.set_name(experiment);
  retry.add_states(v1::CANCELLED);
  std::promise<v1::RetryTrialsResponse> retried;
  with_heartbeat([&] {
    PostRetry(*coordinator_, retry, "ada", [&](const auto& answer) {
      answers.push_back("retry");
      retried.set_value(answer.value_or(v1::RetryTrialsResponse()));
    });
  });
  const v1::RetryTrialsResponse response = retried.get_future().get();
  EXPECT_THAT(answers, ElementsAre("heartbeat", "retry"));
  EXPECT_EQ(response.retried_trials(), 1000);
  EXPECT_EQ(response.experiment().trials().queued(), 1000);
}

TEST_F(CoreSchedulingTest, ConcurrentCancellationAndRetryBothEnd) {
  const std::string experiment = coordinator_.Create("sort", 1, 1000);
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  v1::RetryTrialsRequest retry;
  retry.set_name(experiment);
  retry.add_states(v1::CANCELLED);
  std::promise<absl::Status> retried;
  PostRetry(*coordinator_, retry, "ada",
            [&](const auto& answer) { retried.set_value(answer.status()); });
  const auto cancelled = coordinator_.Cancel(experiment);
  EXPECT_EQ(retried.get_future().get(), absl::OkStatus());
  ASSERT_TRUE(cancelled.ok());
  const v1::TrialCounts counts = coordinator_->reads().GetExperiment(experiment)->trials();
  EXPECT_EQ(counts.queued() + counts.cancelled(), 1000);
}

TEST(HeartbeatIntervalTest, IntervalKeepsTheCancellationPromise) {
  const absl::Duration least = absl::Seconds(1);
  const absl::Duration lease = absl::Seconds(30);
  EXPECT_EQ(Leases::HeartbeatInterval(least, lease, 10), least);
  EXPECT_EQ(Leases::HeartbeatInterval(least, lease, 2'000), least);
  EXPECT_EQ(Leases::HeartbeatInterval(least, lease, 3'000), absl::Milliseconds(1500));
  EXPECT_EQ(Leases::HeartbeatInterval(least, lease, 1'000'000), absl::Milliseconds(1750));
  EXPECT_EQ(Leases::HeartbeatInterval(least, absl::Seconds(5), 3'000), absl::Milliseconds(1250));
  EXPECT_EQ(Leases::HeartbeatInterval(absl::Seconds(5), lease, 10), absl::Seconds(5))
      << "the operator's setting";
}

TEST_F(CoreSchedulingTest, HeartbeatAnswersHaveTheFleetsInterval) {
  coordinator_.options().heartbeat_interval = absl::Milliseconds(100);
  Restart();
  ASSERT_EQ(coordinator_.Register("w0"), absl::OkStatus());
  const auto interval = [&] {
    const auto response = coordinator_.Heartbeat("w0", {});
    EXPECT_TRUE(response.ok()) << response.status();
    return absl::Nanoseconds(response->heartbeat_interval().nanos());
  };
  EXPECT_EQ(interval(), absl::Milliseconds(100));
  for (int i = 1; i < 400; ++i) {
    ASSERT_EQ(coordinator_.Register(absl::StrCat("w", i)), absl::OkStatus());
  }
  EXPECT_EQ(interval(), absl::Milliseconds(200));
}

TEST_F(CoreSchedulingTest, WantedWorkersDescribeWaitingPacks) {
  coordinator_.Create("sort", 2, 3);
  v1::GetWantedWorkersRequest request;
  request.set_max_pack_size(2);
  auto wanted = coordinator_->reads().GetWantedWorkers(request);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  EXPECT_EQ(wanted->runnable_packs(), 4);
  EXPECT_EQ(wanted->busy_workers() + wanted->idle_workers(), 0);
  int64_t trials = 0;
  std::vector<std::string> encodings;
  for (const v1::WantedWorkers& row : wanted->wanted()) {
    EXPECT_NE(row.shape(), "");
    encodings.push_back(row.encoding());
    trials += row.trials();
  }
  EXPECT_EQ(trials, 6);
  EXPECT_THAT(encodings, ElementsAre("", "sines")) << "labels, which ResolveSimply gives one of";

  ASSERT_EQ(coordinator_.Register("busy", 2), absl::OkStatus());
  coordinator_.Acquire("busy");
  ASSERT_EQ(coordinator_.Register("dedicated", 2, "experiments/other-1"), absl::OkStatus());
  v1::SynchronizeRequest call = coordinator_.CallOf("dedicated");
  call.set_wants_lease(true);
  call.mutable_wait()->set_seconds(60);
  const auto waiting = coordinator_.Later(call);
  coordinator_->loop().Flush();
  wanted = coordinator_->reads().GetWantedWorkers(request);
  EXPECT_EQ(wanted->runnable_packs(), 3);
  EXPECT_EQ(wanted->busy_workers(), 1) << "not the one that waits";
  EXPECT_EQ(wanted->idle_workers(), 0) << "not the one that is dedicated";
  EXPECT_EQ(coordinator_->GetStatistics().wanted_workers,
            (std::map<int32_t, int64_t>{{1, 4}, {30, 2}}));

  request.set_experiment("experiments/other-1");
  wanted = coordinator_->reads().GetWantedWorkers(request);
  EXPECT_EQ(wanted->runnable_packs(), 0);
  EXPECT_EQ(wanted->idle_workers(), 1);
  request.set_experiment("experiments/sort-1");
  wanted = coordinator_->reads().GetWantedWorkers(request);
  EXPECT_EQ(wanted->runnable_packs(), 3);
  EXPECT_EQ(wanted->idle_workers(), 0) << "not the one that is dedicated to another experiment";
  request.set_experiment("no name");
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_->reads().GetWantedWorkers(request).status()));
  request.clear_experiment();
  request.set_max_pack_size(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(coordinator_->reads().GetWantedWorkers(request).status()));
}

}  // namespace
}  // namespace lengthwise::server
