// What owners have used, and the limit of their disk space.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/sha256.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CoreUsageTest : public testing::Test {
 protected:
  void Open(int64_t max_owner_bytes = 0) {
    coordinator_.options().max_owner_bytes = max_owner_bytes;
    ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
    ASSERT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  absl::StatusOr<v1::CreateExperimentResponse> Submit(const std::string& owner,
                                                      const std::string& request_id = "") {
    v1::CreateExperimentRequest request;
    request.set_owner(owner);
    request.set_request_id(request_id);
    request.mutable_specification()->set_name("sort");
    request.mutable_specification()->add_learning_rates(0.1);
    request.mutable_specification()->add_seeds(0);
    return coordinator_.TryCreate(request);
  }

  v1::OwnerUsage UsageOf(const std::string& owner) {
    const auto owners = coordinator_->usage().Owners(absl::ZeroDuration());
    for (const v1::OwnerUsage& one : *owners) {
      if (one.owner() == owner) return one;
    }
    return v1::OwnerUsage();
  }

  TestCoordinator coordinator_;
};

TEST_F(CoreUsageTest, UsageCountsByOwnerAndOutlivesExperiments) {
  Open();
  const std::string name = Submit("ada")->experiment().name();
  v1::Lease lease = coordinator_.Acquire("w");
  coordinator_.Advance(absl::Seconds(3));
  EXPECT_DOUBLE_EQ(UsageOf("ada").worker_seconds(), 3) << "of the lease that has not ended";
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 100, {1}));
  ASSERT_TRUE(Submit("grace").ok());
  EXPECT_THAT(coordinator_->GetStatistics().owners, testing::SizeIs(1))
      << "metrics measure nothing";

  const v1::OwnerUsage ada = UsageOf("ada");
  EXPECT_EQ(ada.experiments(), 1);
  EXPECT_EQ(ada.trials(), 1);
  EXPECT_EQ(ada.steps(), 100);
  EXPECT_DOUBLE_EQ(ada.worker_seconds(), 3);
  const v1::DiskUse use = coordinator_->reads().GetExperiment(name)->disk_use();
  EXPECT_GT(use.artifact_bytes(), 0);
  EXPECT_EQ(ada.bytes(), use.artifact_bytes() + use.event_bytes());
  EXPECT_EQ(UsageOf("grace").experiments(), 1);
  EXPECT_EQ(UsageOf("grace").trials(), 0);
  v1::ListExperimentsRequest list;
  list.set_include_usage(true);
  EXPECT_EQ(coordinator_->reads().ListExperiments(list)->usage_size(), 2);
  list.set_owner("ada");
  EXPECT_EQ(coordinator_->reads().ListExperiments(list)->usage_size(), 1);
  EXPECT_EQ(coordinator_->backups().GetStorage()->usage_size(), 2);
  EXPECT_THAT(coordinator_->GetStatistics().owners, testing::SizeIs(2));

  ASSERT_EQ(coordinator_.Delete(name), absl::OkStatus());
  coordinator_.Close();
  ASSERT_EQ(coordinator_.Open(), absl::OkStatus());
  EXPECT_EQ(UsageOf("ada").experiments(), 0);
  EXPECT_EQ(UsageOf("ada").bytes(), 0);
  EXPECT_EQ(UsageOf("ada").trials(), 1);
  EXPECT_EQ(UsageOf("ada").steps(), 100);
  EXPECT_DOUBLE_EQ(UsageOf("ada").worker_seconds(), 3);
}

TEST_F(CoreUsageTest, RepeatedStepsCountOnce) {
  Open();
  ASSERT_TRUE(Submit("ada").ok());
  const v1::Lease lease = coordinator_.Acquire("w");
  ASSERT_EQ(coordinator_.Upload(lease, 0, 30, "half"), absl::OkStatus());
  coordinator_.Send(lease, {CheckpointEvent(lease, 0, 1, 30, "half"), PointsEvent(lease, 0, 2, 50)})
      .IgnoreError();
  coordinator_.Release("w", lease);
  ASSERT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 60, {1}));
  EXPECT_EQ(UsageOf("ada").steps(), 60);
  EXPECT_EQ(UsageOf("ada").trials(), 1);
}

TEST_F(CoreUsageTest, OwnersDiskSpaceIsLimited) {
  Open(/*max_owner_bytes=*/100);
  const auto first = Submit("ada", "once");
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string name = first->experiment().name();
  ASSERT_TRUE(coordinator_.Complete(coordinator_.Acquire("w"), 0, 100, {1}));
  const std::string used = absl::StrCat(UsageOf("ada").bytes());
  const absl::Status refused = Submit("ada").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("of ada use " + used + " bytes"), HasSubstr("limit of 100;"),
                    HasSubstr("lengthwise delete --owner ada"), HasSubstr("--max_owner_bytes")));
  EXPECT_TRUE(Submit("ada", "once").ok()) << "the answer to a repeated call";
  EXPECT_TRUE(Submit("grace").ok());
  EXPECT_EQ(coordinator_.Extend(name, {1}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(coordinator_.Extend(name, {0}).ok()) << "which adds nothing";
  v1::EvaluateTrialRequest evaluate;
  evaluate.set_owner("ada");
  evaluate.set_trial(name + "/trials/lr0-seed0");
  EXPECT_EQ(coordinator_.Evaluate(evaluate).status().code(), absl::StatusCode::kResourceExhausted);

  v1::UploadDataRequest::Header header;
  header.set_sha256(platform::Sha256Hex("x"));
  header.set_size_bytes(101);
  EXPECT_THAT(
      std::string(coordinator_->artifacts().WriteData(header, "bob").status().message()),
      HasSubstr("of bob use 0 bytes of the server's disk, and 101 more would pass the limit"));

  ASSERT_EQ(coordinator_.Delete(name), absl::OkStatus());
  EXPECT_TRUE(Submit("ada").ok());
}

}  // namespace
}  // namespace lengthwise::server
