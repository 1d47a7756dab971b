// Experiments that get more seeds.
#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class CoreExtensionTest : public testing::Test {
 protected:
  CoreExtensionTest() {
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  // Trial ids, by index.
  std::vector<std::string> Trials(const std::string& experiment) {
    v1::ListTrialsRequest request;
    request.set_parent(experiment);
    std::vector<std::string> ids;
    const auto listed = coordinator_->reads().ListTrials(request);
    for (const v1::Trial& trial : listed->trials()) {
      EXPECT_EQ(trial.index(), static_cast<int32_t>(ids.size()));
      ids.push_back(trial.name().substr(trial.name().rfind('/') + 1));
    }
    return ids;
  }

  TestCoordinator coordinator_;
};

TEST_F(CoreExtensionTest, NewTrialsFollowUnchangedOnes) {
  const std::string experiment = coordinator_.Create("sort", 2, 2);
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 10, {1}));
  const std::string before =
      coordinator_->reads().GetTrial(lease.trials(0).trial())->SerializeAsString();

  const auto extended = coordinator_.Extend(experiment, {1, 5, 5, 3});
  ASSERT_TRUE(extended.ok()) << extended.status();
  EXPECT_EQ(extended->added_trials(), 4);
  EXPECT_THAT(extended->experiment().specification().seeds(), ElementsAre(0, 1, 5, 3));
  EXPECT_EQ(extended->experiment().trials().queued(), 7);
  EXPECT_EQ(extended->experiment().trials().succeeded(), 1);
  EXPECT_THAT(Trials(experiment), ElementsAre("lr0-seed0", "lr0-seed1", "lr1-seed0", "lr1-seed1",
                                              "lr0-seed5", "lr0-seed3", "lr1-seed5", "lr1-seed3"));
  EXPECT_EQ(coordinator_->reads().GetTrial(lease.trials(0).trial())->SerializeAsString(), before);

  const auto again = coordinator_.Extend(experiment, {3, 0, 5});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->added_trials(), 0);
  EXPECT_EQ(again->experiment().SerializeAsString(), extended->experiment().SerializeAsString());
  EXPECT_THAT(Trials(experiment), SizeIs(8));
  EXPECT_EQ(coordinator_.Extend("experiments/sort-2", {1}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(CoreExtensionTest, ExtensionReopensAnEndedExperiment) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  ASSERT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 10, {1}));
  ASSERT_TRUE(coordinator_->reads().GetExperiment(experiment)->has_end_time());
  const int64_t position = coordinator_->event_log().ReadEvents(experiment, 0, 100)->next_position;
  std::atomic<int> wakes = 0;
  auto subscription = coordinator_->event_log().Subscribe(
      experiment, [&] { ++wakes; }, [](const v1::TrialProgress&) {});

  ASSERT_TRUE(coordinator_.Extend(experiment, {7}).ok());
  EXPECT_EQ(wakes, 1);
  EXPECT_FALSE(coordinator_->reads().GetExperiment(experiment)->has_end_time());
  EXPECT_EQ(coordinator_->event_log().ReadEvents(experiment, position, 100)->unfinished_trials, 1);

  // A restarted server agrees.
  subscription.reset();
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_THAT(lease.trials(), SizeIs(1));
  EXPECT_EQ(lease.trials(0).trial(), experiment + "/trials/lr0-seed7");
  EXPECT_EQ(lease.trials(0).specification().weight_seed(), 7);
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 10, {1}));
  EXPECT_TRUE(coordinator_->reads().GetExperiment(experiment)->has_end_time());
  EXPECT_EQ(coordinator_->event_log().ReadEvents(experiment, position, 100)->events.front().trial(),
            lease.trials(0).trial());
}

TEST_F(CoreExtensionTest, NewTrialsJoinWaitingPacks) {
  ASSERT_EQ(coordinator_.Register("w", 100), absl::OkStatus());
  const std::string experiment = coordinator_.Create("sort", 2, 2);
  ASSERT_EQ(coordinator_.Extend(experiment, {2, 3})->added_trials(), 4);
  EXPECT_THAT(coordinator_.Acquire("w").trials(), SizeIs(4));
  EXPECT_THAT(coordinator_.Acquire("w").trials(), SizeIs(4));
}

TEST_F(CoreExtensionTest, RepeatedRequestReturnsTheExtendedExperiment) {
  v1::CreateExperimentRequest request;
  request.set_request_id("id");
  request.mutable_specification()->set_name("sort");
  request.mutable_specification()->add_learning_rates(0.1);
  request.mutable_specification()->add_seeds(0);
  const std::string experiment = coordinator_.TryCreate(request)->experiment().name();
  ASSERT_TRUE(coordinator_.Extend(experiment, {1}).ok());
  const auto repeated = coordinator_.TryCreate(request);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_EQ(repeated->experiment().name(), experiment);
  EXPECT_THAT(repeated->trial_ids(), ElementsAre("lr0-seed0", "lr0-seed1"));
  EXPECT_EQ(repeated->trial_count(), 2);
  EXPECT_EQ(repeated->pack_count(), 1);
  // The experiment's current specification is not the one requested.
  request.mutable_specification()->add_seeds(1);
  EXPECT_EQ(coordinator_.TryCreate(request).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(CoreExtensionTest, ConcurrentExtensionsAllApply) {
  const std::string experiment = coordinator_.Create("sort", 1, 1);
  // Blocks the command loop while both extensions are made from the same specification.
  std::promise<void> release;
  v1::CancelTrialRequest cancel;
  cancel.set_name(experiment + "/trials/none");
  coordinator_->loop().Post<v1::Trial>(
      [&] { return coordinator_->experiments().CancelTrial(cancel, ""); },
      [&](const auto&) { release.get_future().wait(); });
  std::promise<v1::ExtendExperimentResponse> first, second;
  v1::ExtendExperimentRequest request;
  request.set_name(experiment);
  request.add_seeds(1);
  PostExtend(*coordinator_, request, [&](auto response) { first.set_value(*response); });
  request.add_seeds(2);
  PostExtend(*coordinator_, request, [&](auto response) { second.set_value(*response); });
  release.set_value();
  EXPECT_EQ(first.get_future().get().added_trials(), 1);
  EXPECT_EQ(second.get_future().get().added_trials(), 1);
  EXPECT_THAT(Trials(experiment), ElementsAre("lr0-seed0", "lr0-seed1", "lr0-seed2"));
}

TEST(CoreExtensionFaultsTest, FullDiskLeavesTheExperimentUnchanged) {
  TestCoordinator coordinator(NewDirectory(), /*max_database_bytes=*/400'000);
  ASSERT_EQ(coordinator.Open(), absl::OkStatus());
  ASSERT_EQ(coordinator.Register("w", 10'000), absl::OkStatus());
  const std::string experiment = coordinator.Create("sort", 1, 1);
  const std::string before = coordinator->reads().GetExperiment(experiment)->SerializeAsString();
  std::vector<uint64_t> seeds(5000);
  for (size_t i = 0; i < seeds.size(); ++i) seeds[i] = i;
  EXPECT_EQ(coordinator.Extend(experiment, seeds).status().code(), absl::StatusCode::kUnavailable);
  v1::Experiment after = *coordinator->reads().GetExperiment(experiment);
  EXPECT_NE(after.storage_fault(), "") << "its queued trial waits for room";
  after.clear_storage_fault();
  EXPECT_EQ(after.SerializeAsString(), before);
  EXPECT_THAT(coordinator.Acquire("w").trials(), SizeIs(1));
}

}  // namespace
}  // namespace lengthwise::server
