// The limit of an owner's queued and running trials.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/status.h"
#include "server/coordination/testing/test_coordinator.h"

namespace lengthwise::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CoreQuotaTest : public testing::Test {
 protected:
  CoreQuotaTest() {
    coordinator_.options().max_unended_trials = 6;
    EXPECT_EQ(coordinator_.Open(), absl::OkStatus());
    EXPECT_EQ(coordinator_.Register("w"), absl::OkStatus());
  }

  absl::StatusOr<v1::CreateExperimentResponse> Submit(const std::string& owner, int trials,
                                                      const std::string& request_id = "") {
    v1::CreateExperimentRequest request;
    request.set_owner(owner);
    request.set_request_id(request_id);
    request.mutable_specification()->set_name("sort");
    request.mutable_specification()->add_learning_rates(0.1);
    for (int seed = 0; seed < trials; ++seed) request.mutable_specification()->add_seeds(seed);
    return coordinator_.TryCreate(request);
  }

  TestCoordinator coordinator_;
};

TEST_F(CoreQuotaTest, QuotaCountsTrialsByOwner) {
  ASSERT_TRUE(Submit("ada", 4).ok());
  ASSERT_TRUE(Submit("grace", 6).ok());
  EXPECT_TRUE(Submit("ada", 2).ok());
  const absl::Status status = Submit("ada", 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("ada has 6 trials that have not ended, and 1 more"),
                    HasSubstr("--max_unended_trials")));
  EXPECT_GT(rpc::RetryDelay(status), absl::ZeroDuration());
}

TEST_F(CoreQuotaTest, EndedTrialsFreeQuota) {
  const auto created = Submit("ada", 6);
  ASSERT_TRUE(created.ok());
  EXPECT_FALSE(Submit("ada", 1).ok());
  const v1::Lease lease = coordinator_.Acquire("w");
  EXPECT_FALSE(Submit("ada", 1).ok()) << "a running trial has not ended";
  ASSERT_TRUE(coordinator_.Complete(lease, 0, 10, {1}));
  EXPECT_TRUE(Submit("ada", 1).ok());
  EXPECT_FALSE(Submit("ada", 1).ok());
  ASSERT_TRUE(coordinator_.Cancel(created->experiment().name()).ok());
  EXPECT_TRUE(Submit("ada", 5).ok());
}

TEST_F(CoreQuotaTest, RepeatedSubmissionIsAnsweredAtTheLimit) {
  const auto first = Submit("ada", 6, "once");
  ASSERT_TRUE(first.ok());
  const auto again = Submit("ada", 6, "once");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->experiment().name(), first->experiment().name());
}

TEST_F(CoreQuotaTest, ExtensionCountsTowardsTheQuota) {
  const auto created = Submit("ada", 4);
  ASSERT_TRUE(created.ok());
  const std::string name = created->experiment().name();
  EXPECT_EQ(coordinator_.Extend(name, {4, 5, 6}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(coordinator_->reads().GetExperiment(name)->trials().queued(), 4);
  EXPECT_TRUE(coordinator_.Extend(name, {4, 5}).ok());
  EXPECT_TRUE(coordinator_.Extend(name, {4, 5}).ok()) << "which adds nothing";
}

}  // namespace
}  // namespace lengthwise::server
