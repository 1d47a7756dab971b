#include "server/coordination/core.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "platform/version.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CoreTest : public testing::Test {
 protected:
  CoreTest() {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  v1::StreamEventsResponse Send(const v1::Lease& lease, const std::vector<v1::Event>& events) {
    const auto response = coordinator_.Send(lease, events);
    EXPECT_TRUE(response.ok()) << response.status();
    return *response;
  }

  // Facts that workers measured: (step, kind), in the order of the history.
  std::vector<std::pair<int64_t, int>> Measured(const std::string& experiment) {
    std::vector<std::pair<int64_t, int>> facts;
    for (const v1::Event& event : coordinator_.History(experiment)) {
      if (event.sequence() > 0) facts.emplace_back(event.step(), event.fact_case());
    }
    return facts;
  }

  std::string ArtifactPath(const v1::Lease& lease, const std::string& bytes) {
    std::string trial = lease.trials(0).trial().substr(std::string("experiments/").size());
    trial.replace(trial.find("/trials"), 7, "");
    return absl::StrCat(coordinator_.data_dir(), "/artifacts/", trial, "/",
                        platform::Sha256Hex(bytes), ".safetensors");
  }

  TestCoordinator coordinator_;
};

TEST_F(CoreTest, TrialRunsFromSubmissionToOutcome) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  EXPECT_EQ(experiment, "experiments/sort-1");
  const std::string name = experiment + "/trials/lr0-seed0";
  EXPECT_THAT(coordinator_->reads().GetTrial(name)->reason(), HasSubstr("is next; 1 worker"));

  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(1));
  EXPECT_EQ(lease.trials(0).trial(), name);
  EXPECT_EQ(lease.trials(0).specification().learning_rate(), 0.001);
  EXPECT_EQ(lease.trials(0).attempt(), 1);
  EXPECT_EQ(coordinator_->reads().GetTrial(name)->state(), v1::RUNNING);

  EXPECT_EQ(Send(lease, {PointsEvent(lease, 0, 1, 10), PointsEvent(lease, 0, 2, 20)})
                .acknowledged_sequence(),
            2);
  Send(lease, coordinator_.Completion(lease, 0, 3, 20));

  const v1::Trial trial = *coordinator_->reads().GetTrial(name);
  EXPECT_EQ(trial.state(), v1::SUCCEEDED);
  EXPECT_EQ(trial.reason(), "completed by w in attempt 1");
  EXPECT_EQ(trial.outcome().kind(), v1::Outcome::COMPLETED);
  const v1::Experiment ended = *coordinator_->reads().GetExperiment(experiment);
  EXPECT_EQ(ended.trials().succeeded(), 1);
  EXPECT_TRUE(ended.has_end_time());

  const std::vector<v1::Event> history = coordinator_.History(experiment);
  ASSERT_THAT(history, SizeIs(6));
  EXPECT_EQ(history[0].state_change().worker(), "w");
  EXPECT_EQ(history[1].training_points().steps(0), 10);
  EXPECT_EQ(history[1].trial(), name);
  EXPECT_EQ(history[5].state_change().to(), v1::SUCCEEDED);
  for (size_t i = 1; i < history.size(); ++i) {
    EXPECT_GT(history[i].position(), history[i - 1].position());
  }
  EXPECT_EQ(coordinator_->event_log().ReadEvents(experiment, 0, 100)->unfinished_trials, 0);
}

TEST_F(CoreTest, EventsAreStoredOnceAndGapsAreRefused) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  const std::vector<v1::Event> events = {PointsEvent(lease, 0, 1, 10),
                                         PointsEvent(lease, 0, 2, 20)};
  Send(lease, events);
  EXPECT_EQ(Send(lease, events).acknowledged_sequence(), 2);
  EXPECT_EQ(Send(lease, {events[1], PointsEvent(lease, 0, 3, 30)}).acknowledged_sequence(), 3);
  const v1::StreamEventsResponse gap = Send(lease, {PointsEvent(lease, 0, 5, 50)});
  EXPECT_EQ(gap.refusal(), v1::StreamEventsResponse::SEQUENCE_GAP);
  EXPECT_EQ(gap.acknowledged_sequence(), 3);
  EXPECT_THAT(Measured(experiment), SizeIs(3));
  // Also after the trial has ended: the acknowledgement of the outcome may have been lost.
  const std::vector<v1::Event> outcome = coordinator_.Completion(lease, 0, 4, 30);
  Send(lease, outcome);
  EXPECT_EQ(Send(lease, outcome).acknowledged_sequence(), 5);
  EXPECT_EQ(Send(lease, outcome).refusal(), v1::StreamEventsResponse::REFUSAL_UNSPECIFIED);
  EXPECT_EQ(Send(lease, {PointsEvent(lease, 0, 6, 40)}).refusal(),
            v1::StreamEventsResponse::STALE_LEASE);
}

TEST_F(CoreTest, EachTrialOfABatchIsStoredOrRefusedByItself) {
  const std::string experiment = coordinator_.Create("sort", 1, 3);
  ASSERT_EQ(coordinator_.Register("w", 3), absl::OkStatus());
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_EQ(lease.trials_size(), 3);
  const v1::StreamEventsResponse response =
      Send(lease, {PointsEvent(lease, 0, 1, 10), PointsEvent(lease, 0, 2, 20),
                   PointsEvent(lease, 1, 2, 20), PointsEvent(lease, 2, 1, 10)});
  EXPECT_EQ(response.trial(), lease.trials(0).trial());
  EXPECT_EQ(response.acknowledged_sequence(), 2);
  EXPECT_EQ(response.refusal(), v1::StreamEventsResponse::REFUSAL_UNSPECIFIED);
  ASSERT_EQ(response.others_size(), 2);
  EXPECT_EQ(response.others(0).trial(), lease.trials(1).trial());
  EXPECT_EQ(response.others(0).refusal(), v1::StreamEventsResponse::SEQUENCE_GAP);
  EXPECT_EQ(response.others(1).trial(), lease.trials(2).trial());
  EXPECT_EQ(response.others(1).acknowledged_sequence(), 1);
  EXPECT_THAT(Measured(experiment), SizeIs(3));
}

TEST_F(CoreTest, MalformedBatchIsRefusedAsAWhole) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  v1::Event bent = PointsEvent(lease, 0, 2, 20);
  bent.mutable_training_points()->add_losses(1);
  v1::Event server_made = PointsEvent(lease, 0, 2, 20);
  server_made.mutable_state_change()->set_to(v1::SUCCEEDED);
  for (const v1::Event& event : {bent, server_made, PointsEvent(lease, 0, 3, 20),
                                 CheckpointEvent(lease, 0, 2, 20, "never uploaded")}) {
    const v1::StreamEventsResponse response = Send(lease, {PointsEvent(lease, 0, 1, 10), event});
    EXPECT_EQ(response.refusal(), event.has_checkpoint() ? v1::StreamEventsResponse::NOT_STORED
                                                         : v1::StreamEventsResponse::INVALID)
        << event.DebugString();
    EXPECT_NE(response.detail(), "");
  }
  EXPECT_THAT(Measured(experiment), IsEmpty());
}

TEST_F(CoreTest, ExpiredLeaseCannotWrite) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease old_lease = coordinator_.Acquire("w");
  coordinator_.Advance(absl::Seconds(31));
  const v1::Trial waiting = *coordinator_->reads().GetTrial(old_lease.trials(0).trial());
  EXPECT_EQ(waiting.state(), v1::QUEUED);
  EXPECT_EQ(Send(old_lease, {PointsEvent(old_lease, 0, 1, 10)}).refusal(),
            v1::StreamEventsResponse::STALE_LEASE);
  ASSERT_EQ(coordinator_.Register("other"), absl::OkStatus());
  const v1::Lease lease = coordinator_.Acquire("other");
  EXPECT_GT(lease.fencing_token(), old_lease.fencing_token());
  EXPECT_EQ(Send(old_lease, {PointsEvent(old_lease, 0, 1, 10)}).refusal(),
            v1::StreamEventsResponse::STALE_LEASE);
  EXPECT_EQ(coordinator_.Upload(old_lease, 0, 10, "bytes").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(coordinator_.Heartbeat("w", {old_lease})->leases(0).lost());
  EXPECT_EQ(Send(lease, {PointsEvent(lease, 0, 1, 10)}).acknowledged_sequence(), 1);
  EXPECT_EQ(coordinator_->GetStatistics().lease_expiries, 1);
}

TEST_F(CoreTest, TokenOfAnotherLeaseCannotWrite) {
  const std::string experiment = coordinator_.Create("sort", 1, 2);
  v1::Lease lease = coordinator_.Acquire("w");
  const v1::Lease other = coordinator_.Acquire("w");
  lease.set_lease_id(other.lease_id());
  lease.set_fencing_token(other.fencing_token());
  EXPECT_EQ(Send(lease, {PointsEvent(lease, 0, 1, 10)}).refusal(),
            v1::StreamEventsResponse::STALE_LEASE);
  EXPECT_EQ(coordinator_.Upload(lease, 0, 10, "bytes").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Measured(experiment), IsEmpty());
}

TEST_F(CoreTest, AResumedTrialHasTheHistoryOfAnUndisturbedOne) {
  // The final evaluation has the checkpoint's step but comes after it, so it is made again.
  const auto run = [&](const v1::Lease& lease, int64_t from_step) {
    std::vector<v1::Event> events;
    for (const int64_t step : {10, 20, 30}) {
      if (step > from_step) events.push_back(PointsEvent(lease, 0, events.size() + 1, step));
    }
    return events;
  };
  const std::string disturbed = coordinator_.Create("disturbed", 1, 1);
  const v1::Lease first = coordinator_.Acquire("w");
  std::vector<v1::Event> events = run(first, 0);
  ASSERT_EQ(coordinator_.Upload(first, 0, 20, "weights"), absl::OkStatus());
  events.insert(events.begin() + 2, CheckpointEvent(first, 0, 3, 20, "weights"));
  events[3].set_sequence(4);
  v1::Event evaluation = PointsEvent(first, 0, 5, 20);
  evaluation.mutable_length_accuracies()->set_final(true);
  events.push_back(evaluation);
  Send(first, events);
  coordinator_.Release("w", first);

  const v1::Lease second = coordinator_.Acquire("w");
  EXPECT_EQ(second.trials(0).checkpoint_step(), 20);
  EXPECT_EQ(second.trials(0).checkpoint().sha256(), platform::Sha256Hex("weights"));
  EXPECT_EQ(second.trials(0).attempt(), 2);
  Send(second, {PointsEvent(second, 0, 1, 30)});
  Send(second, coordinator_.Completion(second, 0, 2, 30));

  const int points = v1::Event::kTrainingPoints;
  EXPECT_THAT(Measured(disturbed),
              ElementsAre(std::pair<int64_t, int>(10, points), std::pair<int64_t, int>(20, points),
                          std::pair<int64_t, int>(20, v1::Event::kCheckpoint),
                          std::pair<int64_t, int>(30, points),
                          std::pair<int64_t, int>(30, v1::Event::kCheckpoint),
                          std::pair<int64_t, int>(30, v1::Event::kOutcome)));
  std::vector<int64_t> resumed;
  for (const v1::Event& event : coordinator_.History(disturbed)) {
    if (event.state_change().to() == v1::RUNNING) {
      resumed.push_back(event.state_change().resumed_from_step());
      EXPECT_EQ(event.step(), event.state_change().resumed_from_step());
    }
  }
  EXPECT_THAT(resumed, ElementsAre(0, 20));
}

TEST_F(CoreTest, DamagedCheckpointFallsBackToThePreviousOne) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  for (const int64_t step : {10, 20, 30}) {
    const std::string bytes = absl::StrCat("weights of step ", step);
    ASSERT_EQ(coordinator_.Upload(lease, 0, step, bytes), absl::OkStatus());
    Send(lease, {CheckpointEvent(lease, 0, step / 10, step, bytes)});
  }
  coordinator_->sweeper().Flush();
  coordinator_.Release("w", lease);
  // Two are kept.
  EXPECT_FALSE(std::filesystem::exists(ArtifactPath(lease, "weights of step 10")));
  std::ofstream(ArtifactPath(lease, "weights of step 30")) << "weights of step 3x";

  const v1::Lease second = coordinator_.Acquire("w");
  EXPECT_EQ(second.trials(0).checkpoint_step(), 20);
  std::string warning;
  for (const v1::Event& event : coordinator_.History(experiment)) {
    if (event.has_log_line()) warning = event.log_line().text();
  }
  EXPECT_THAT(warning, HasSubstr("the checkpoint of step 30 cannot be used"));
  EXPECT_THAT(warning, HasSubstr("going on from the one of step 20"));
  coordinator_.Release("w", second);

  std::filesystem::remove(ArtifactPath(lease, "weights of step 20"));
  const v1::Lease third = coordinator_.Acquire("w");
  EXPECT_EQ(third.trials(0).checkpoint_step(), 0);
  EXPECT_FALSE(third.trials(0).has_checkpoint());
  EXPECT_THAT(Measured(experiment), IsEmpty());
}

TEST_F(CoreTest, LostCheckpointFallsBackToAnEarlierOneOfItsStep) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  int64_t sequence = 0;
  for (const auto& [step, bytes] : std::vector<std::pair<int64_t, std::string>>{
           {10, "first"}, {20, "drained"}, {20, "evaluated"}}) {
    ASSERT_EQ(coordinator_.Upload(lease, 0, step, bytes), absl::OkStatus());
    Send(lease, {CheckpointEvent(lease, 0, ++sequence, step, bytes)});
  }
  coordinator_->sweeper().Flush();
  coordinator_.Release("w", lease);
  std::filesystem::remove(ArtifactPath(lease, "evaluated"));

  const v1::Lease second = coordinator_.Acquire("w");
  EXPECT_EQ(second.trials(0).checkpoint_step(), 20);
  EXPECT_EQ(second.trials(0).checkpoint().sha256(), platform::Sha256Hex("drained"));
  std::string warning;
  for (const v1::Event& event : coordinator_.History(experiment)) {
    if (event.has_log_line()) warning = event.log_line().text();
  }
  EXPECT_THAT(warning, HasSubstr("going on from an earlier one of that step"));
}

// Reading gigabytes takes long and would block the whole server.
TEST_F(CoreTest, LargeCheckpointIsVerifiedOnDownload) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  const std::string large(size_t{65} << 20, 'w');
  ASSERT_EQ(coordinator_.Upload(lease, 0, 10, "weights"), absl::OkStatus());
  Send(lease, {CheckpointEvent(lease, 0, 1, 10, "weights")});
  ASSERT_EQ(coordinator_.Upload(lease, 0, 20, large), absl::OkStatus());
  const std::string path = ArtifactPath(lease, large);
  std::fstream(path, std::ios::in | std::ios::out) << "x";
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  // A server started since the upload has not read the file.
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  Send(lease, {CheckpointEvent(lease, 0, 2, 20, large)});
  coordinator_.Release("w", lease);

  const v1::Lease second = coordinator_.Acquire("w");
  EXPECT_EQ(second.trials(0).checkpoint_step(), 20);
  EXPECT_EQ(
      coordinator_.Download(second, 0, second.trials(0).checkpoint().sha256()).status().code(),
      absl::StatusCode::kDataLoss);
  coordinator_.Release("w", second);

  EXPECT_EQ(coordinator_.Acquire("w").trials(0).checkpoint_step(), 10);
  std::string warning;
  for (const v1::Event& event : coordinator_.History(experiment)) {
    if (event.has_log_line()) warning = event.log_line().text();
  }
  EXPECT_THAT(warning, HasSubstr("the checkpoint of step 20 cannot be used"));
}

TEST_F(CoreTest, UploadMustMatchItsHeader) {
  coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  v1::UploadArtifactRequest::Header header;
  header.set_lease_id(lease.lease_id());
  header.set_fencing_token(lease.fencing_token());
  header.set_trial(lease.trials(0).trial());
  header.set_sha256(platform::Sha256Hex("weights"));
  header.set_size_bytes(7);
  auto writer = coordinator_->artifacts().Write(header, "anonymous");
  ASSERT_TRUE((*writer)->Append("weighty").ok());
  EXPECT_EQ((*writer)->Finish().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ((*writer)->Append("more").code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(ArtifactPath(lease, "weights")));

  ASSERT_EQ(coordinator_.Upload(lease, 0, 10, "weights"), absl::OkStatus());
  EXPECT_EQ(coordinator_.Download(lease, 0, platform::Sha256Hex("weights")).value_or(""),
            "weights");
  EXPECT_EQ(coordinator_.Download(lease, 0, "../../../../etc/passwd").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CoreTest, RepeatedRequestIdCreatesNothing) {
  v1::CreateExperimentRequest request;
  request.set_request_id("id");
  request.mutable_specification()->set_name("sort");
  request.mutable_specification()->add_learning_rates(0.1);
  request.mutable_specification()->add_seeds(0);
  EXPECT_EQ(coordinator_.TryCreate(request)->experiment().name(), "experiments/sort-1");
  EXPECT_EQ(coordinator_.TryCreate(request)->experiment().name(), "experiments/sort-1");
  EXPECT_THAT(coordinator_->reads().ListExperiments({})->experiments(), SizeIs(1));
  request.mutable_specification()->add_seeds(1);
  EXPECT_EQ(coordinator_.TryCreate(request).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(CoreTest, RequestIdOfDeletedExperimentCreatesNothing) {
  v1::CreateExperimentRequest request;
  request.set_request_id("r1");
  request.mutable_specification()->set_name("sort");
  request.mutable_specification()->add_learning_rates(0.1);
  request.mutable_specification()->add_seeds(0);
  ASSERT_TRUE(coordinator_.TryCreate(request).ok());
  ASSERT_TRUE(coordinator_.Cancel("experiments/sort-1").ok());
  ASSERT_EQ(coordinator_.Delete("experiments/sort-1"), absl::OkStatus());
  for (const bool restarted : {false, true}) {
    if (restarted) {
      coordinator_.Close();
      ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    }
    const absl::Status repeated = coordinator_.TryCreate(request).status();
    EXPECT_EQ(repeated.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(repeated.message()),
                HasSubstr("\"r1\" created experiments/sort-1, which was deleted"));
  }
  EXPECT_THAT(coordinator_->reads().ListExperiments({})->experiments(), IsEmpty());
  request.mutable_specification()->add_seeds(1);
  EXPECT_EQ(coordinator_.TryCreate(request).status().code(), absl::StatusCode::kAlreadyExists);
  request.set_request_id("r2");
  EXPECT_EQ(coordinator_.TryCreate(request)->experiment().name(), "experiments/sort-2");
}

TEST_F(CoreTest, TrialDoesNotSucceedWithoutItsModel) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  const auto refused = [&](const std::vector<v1::Event>& events) {
    const v1::StreamEventsResponse response = Send(lease, events);
    EXPECT_EQ(response.refusal(), v1::StreamEventsResponse::INVALID);
    return response.detail();
  };
  EXPECT_THAT(refused({OutcomeEvent(lease, 0, 1, 20, v1::Outcome::COMPLETED)}),
              HasSubstr("COMPLETED at step 20 without its model: there is no checkpoint"));
  ASSERT_EQ(coordinator_.Upload(lease, 0, 10, "weights"), absl::OkStatus());
  const v1::Event checkpoint = CheckpointEvent(lease, 0, 1, 10, "weights");
  EXPECT_THAT(refused({checkpoint, OutcomeEvent(lease, 0, 2, 20, v1::Outcome::COMPLETED)}),
              HasSubstr("the newest checkpoint is of step 10"));
  EXPECT_THAT(Measured(experiment), IsEmpty());
  // A failed trial needs no model.
  EXPECT_EQ(
      Send(lease, {checkpoint, OutcomeEvent(lease, 0, 2, 20, v1::Outcome::FAILED_PERMANENTLY)})
          .acknowledged_sequence(),
      2);
}

TEST_F(CoreTest, CheckpointsAscend) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_EQ(coordinator_.Upload(lease, 0, 20, "weights"), absl::OkStatus());
  Send(lease, {CheckpointEvent(lease, 0, 1, 20, "weights")});
  for (const int64_t step : {0, 10}) {
    const v1::StreamEventsResponse response =
        Send(lease, {CheckpointEvent(lease, 0, 2, step, "weights")});
    EXPECT_EQ(response.refusal(), v1::StreamEventsResponse::INVALID);
    EXPECT_THAT(response.detail(), HasSubstr("comes after one of step 20"));
  }
  EXPECT_EQ(coordinator_->reads().GetTrial(lease.trials(0).trial())->checkpoint_step(), 20);
  // A resumed trial that makes a late evaluation stores its checkpoint again.
  EXPECT_EQ(Send(lease, {CheckpointEvent(lease, 0, 2, 20, "weights")}).acknowledged_sequence(), 2);
}

TEST_F(CoreTest, ValidationStoresNothing) {
  v1::CreateExperimentRequest request;
  request.set_validate_only(true);
  request.mutable_specification()->set_name("sort");
  request.mutable_specification()->add_learning_rates(0.1);
  for (int seed = 0; seed < 3; ++seed) request.mutable_specification()->add_seeds(seed);
  const auto response = coordinator_.TryCreate(request);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->experiment().name(), "");
  EXPECT_EQ(response->trial_count(), 3);
  EXPECT_EQ(response->pack_count(), 1);
  EXPECT_THAT(coordinator_->reads().ListExperiments({})->experiments(), IsEmpty());

  request.mutable_specification()->set_name("wrong");
  const absl::Status status = coordinator_.TryCreate(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(status.GetPayload(specification::kBadRequestTypeUrl).has_value());
}

TEST_F(CoreTest, IncompatibleWorkerIsToldWhatToUpgrade) {
  EXPECT_EQ(coordinator_.Register("w", 1, "", platform::kWorkerApiVersion), absl::OkStatus());
  for (const auto& [version, side] : {std::pair(platform::kWorkerApiVersion - 1, "worker"),
                                      std::pair(platform::kWorkerApiVersion + 1, "server")}) {
    const absl::Status status = coordinator_.Register("w", 1, "", version);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("; upgrade the ", side)));
  }
}

TEST_F(CoreTest, CancelReachesARunningTrialAtTheNextHeartbeat) {
  const std::string experiment = coordinator_.Create("sort", 1, 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  EXPECT_EQ(coordinator_.Delete(experiment).code(), absl::StatusCode::kFailedPrecondition);
  const v1::Experiment cancelled = *coordinator_.Cancel(experiment, "wrong task");
  EXPECT_EQ(cancelled.trials().cancelled(), 2);
  EXPECT_TRUE(cancelled.has_end_time());
  EXPECT_THAT(coordinator_.Heartbeat("w", {lease})->leases(0).cancelled_trials(),
              ElementsAre(lease.trials(0).trial()));
  EXPECT_EQ(Send(lease, {PointsEvent(lease, 0, 1, 10)}).refusal(),
            v1::StreamEventsResponse::STALE_LEASE);
  EXPECT_EQ(coordinator_->reads().GetTrial(lease.trials(0).trial())->reason(), "wrong task");
  EXPECT_TRUE(coordinator_.Cancel(experiment).ok());
  EXPECT_TRUE(coordinator_.CancelTrial(lease.trials(0).trial()).ok());

  EXPECT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  EXPECT_EQ(coordinator_.Delete(experiment).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(coordinator_->event_log().ReadEvents(experiment, 0, 10).status().code(),
            absl::StatusCode::kNotFound);
  // Numbers are never reused.
  EXPECT_EQ(coordinator_.Create("sort", 1, 1), "experiments/sort-2");
}

TEST_F(CoreTest, RegressionDeletionDoesNotHideACancellation) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_.Cancel(experiment).ok());
  ASSERT_EQ(coordinator_.Delete(experiment), absl::OkStatus());
  EXPECT_TRUE(coordinator_.Heartbeat("w", {lease})->leases(0).lost());
}

TEST_F(CoreTest, ListsPageByPageAndFilters) {
  const std::string experiment = coordinator_.Create("sort", 4, 3);
  coordinator_.Create("sort", 1, 1);
  v1::ListTrialsRequest request;
  request.set_parent(experiment);
  request.set_page_size(5);
  std::vector<std::string> names;
  do {
    const auto page = coordinator_->reads().ListTrials(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::Trial& trial : page->trials()) names.push_back(trial.name());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  ASSERT_THAT(names, SizeIs(12));
  EXPECT_EQ(names[0], experiment + "/trials/lr0-seed0");
  EXPECT_EQ(names[11], experiment + "/trials/lr3-seed2");

  request.set_page_size(0);
  request.set_filter("state = QUEUED AND encoding = \"sines\"");
  EXPECT_THAT(coordinator_->reads().ListTrials(request)->trials(), SizeIs(6));
  request.set_filter("state = RUNNING");
  EXPECT_THAT(coordinator_->reads().ListTrials(request)->trials(), IsEmpty());
  for (const std::string wrong : {"colour = red", "state = MAYBE", "state", "state=RUNNING AND "}) {
    request.set_filter(wrong);
    EXPECT_EQ(coordinator_->reads().ListTrials(request).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
  }
  request.set_filter("");
  request.set_page_token("bm9uc2Vuc2U");
  EXPECT_EQ(coordinator_->reads().ListTrials(request).status().code(),
            absl::StatusCode::kInvalidArgument);

  v1::ListExperimentsRequest list;
  list.set_page_size(1);
  const auto newest = coordinator_->reads().ListExperiments(list);
  EXPECT_EQ(newest->experiments(0).name(), "experiments/sort-2");
  list.set_page_token(newest->next_page_token());
  EXPECT_EQ(coordinator_->reads().ListExperiments(list)->experiments(0).name(), experiment);
}

TEST_F(CoreTest, PagesOfTrialsHaveEachOnce) {
  v1::ListTrialsRequest request;
  request.set_parent(coordinator_.Create("sort", 2, 125));
  for (const auto& [filter, count] : {std::pair("", 250u), {"encoding = \"sines\"", 125u}}) {
    for (const int32_t size : {99, 100, 101, 125, 200, 250, 1000}) {
      request.set_filter(filter);
      request.set_page_size(size);
      std::vector<int32_t> indices;
      do {
        const auto page = coordinator_->reads().ListTrials(request);
        ASSERT_TRUE(page.ok()) << page.status();
        EXPECT_FALSE(page->trials().empty()) << filter << size;
        for (const v1::Trial& trial : page->trials()) indices.push_back(trial.index());
        request.set_page_token(page->next_page_token());
      } while (!request.page_token().empty());
      EXPECT_THAT(indices, SizeIs(count)) << filter << size;
      EXPECT_EQ(std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()),
                indices.end());
    }
  }
}

TEST_F(CoreTest, PageEndsAfterSomeMebibytes) {
  v1::CreateExperimentRequest create;
  v1::ExperimentSpecification& specification = *create.mutable_specification();
  specification.set_name("large");
  specification.add_seeds(0);
  specification.add_learning_rates(0.001);
  specification.set_description(std::string(3 << 20, 'd'));
  for (int i = 0; i < 19; ++i) ASSERT_TRUE(coordinator_.TryCreate(create).ok());
  specification.clear_description();
  specification.add_tasks()->set_label(std::string(3 << 20, 't'));
  for (int i = 1; i < 20; ++i) specification.add_learning_rates(0.001 * (i + 1));
  const auto created = coordinator_.TryCreate(create);
  ASSERT_TRUE(created.ok()) << created.status();

  v1::ListExperimentsRequest experiments;
  experiments.set_page_size(1000);
  std::set<std::string> names;
  do {
    const auto page = coordinator_->reads().ListExperiments(experiments);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->ByteSizeLong(), 8 << 20) << "4 MiB, and one entry more";
    for (const v1::Experiment& one : page->experiments()) names.insert(one.name());
    experiments.set_page_token(page->next_page_token());
  } while (!experiments.page_token().empty());
  EXPECT_THAT(names, SizeIs(20));

  v1::ListTrialsRequest trials;
  trials.set_parent(created->experiment().name());
  trials.set_page_size(1000);
  names.clear();
  do {
    const auto page = coordinator_->reads().ListTrials(trials);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->ByteSizeLong(), 8 << 20) << "4 MiB, and one entry more";
    for (const v1::Trial& one : page->trials()) names.insert(one.name());
    trials.set_page_token(page->next_page_token());
  } while (!trials.page_token().empty());
  EXPECT_THAT(names, SizeIs(20));
}

TEST_F(CoreTest, WaitingWorkerGetsWorkOrATimeout) {
  v1::SynchronizeRequest request = coordinator_.CallOf("w");
  request.set_wants_lease(true);
  request.mutable_wait()->set_seconds(20);
  auto first = coordinator_.Later(request);
  coordinator_->loop().Flush();
  coordinator_.Advance(absl::Seconds(21));
  const v1::SynchronizeResponse nothing = first.get().value();
  EXPECT_FALSE(nothing.has_lease());
  EXPECT_EQ(nothing.no_lease_reason(), "no trials are queued");
  request.set_number(request.number() + 1);
  auto second = coordinator_.Later(request);
  coordinator_.Create("sort", 1, 1);
  EXPECT_TRUE(second.get()->has_lease());
}

TEST_F(CoreTest, SubscribersAreCalledUntilTheyUnsubscribe) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  std::atomic<int> wakes = 0;
  std::atomic<int> progress = 0;
  auto subscription = coordinator_->event_log().Subscribe(
      experiment, [&] { ++wakes; }, [&](const v1::TrialProgress&) { ++progress; });
  const v1::Lease lease = coordinator_.Acquire("w");
  coordinator_.Heartbeat("w", {lease}).IgnoreError();
  Send(lease, {PointsEvent(lease, 0, 1, 10)});
  coordinator_->loop().Flush();
  EXPECT_EQ(wakes, 2);
  EXPECT_EQ(progress, 1);
  subscription.reset();
  Send(lease, {PointsEvent(lease, 0, 2, 20)});
  coordinator_->loop().Flush();
  EXPECT_EQ(wakes, 2);
}

TEST_F(CoreTest, ReadsEventsOfOneKindInTheOrderOfTheGrid) {
  const std::string experiment = coordinator_.Create("sort", 2, 1);
  const v1::Lease first = coordinator_.Acquire("w");
  const v1::Lease second = coordinator_.Acquire("w");
  Send(second, {PointsEvent(second, 0, 1, 10)});
  Send(first, {PointsEvent(first, 0, 1, 10), PointsEvent(first, 0, 2, 20)});
  std::vector<std::string> seen;
  const auto take = [&](const v1::Event& event) {
    seen.push_back(
        absl::StrCat(event.trial().substr(event.trial().rfind('/') + 1), " ", event.step()));
  };
  ASSERT_EQ(coordinator_->event_log().ForEachEvent(experiment, v1::Event::kTrainingPoints, take),
            absl::OkStatus());
  EXPECT_THAT(seen, ElementsAre("lr0-seed0 10", "lr0-seed0 20", "lr1-seed0 10"));
  seen.clear();
  ASSERT_EQ(coordinator_->event_log().ForEachEvent(experiment + "/trials/lr1-seed0",
                                                   v1::Event::kTrainingPoints, take),
            absl::OkStatus());
  EXPECT_THAT(seen, ElementsAre("lr1-seed0 10"));
  EXPECT_EQ(coordinator_->event_log().ForEachEvent("experiments/none-1", 11, take).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace lengthwise::server
