#include "server/security/quotas.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/status.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

class QuotasTest : public testing::Test {
 protected:
  absl::Time now_ = absl::UnixEpoch();
  Quotas Make(const Quotas::Options& options) {
    return Quotas(options, [this] { return now_; });
  }
};

TEST_F(QuotasTest, RefusedCallIsToldWhenToRetry) {
  Quotas quotas = Make({.calls_per_second = 4, .burst = 2});
  EXPECT_TRUE(quotas.TakeCall("ada").ok());
  EXPECT_TRUE(quotas.TakeCall("ada").ok());
  const absl::Status status = quotas.TakeCall("ada");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(rpc::RetryDelay(status), absl::Milliseconds(250));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--max_calls_per_second"));
  now_ += absl::Milliseconds(250);
  EXPECT_TRUE(quotas.TakeCall("ada").ok());
}

TEST_F(QuotasTest, QuotasArePerPrincipal) {
  Quotas quotas = Make({.calls_per_second = 1, .burst = 1, .streams = 1});
  EXPECT_TRUE(quotas.TakeCall("ada").ok());
  EXPECT_FALSE(quotas.TakeCall("ada").ok());
  EXPECT_TRUE(quotas.TakeCall("grace").ok());
  const absl::StatusOr<Quotas::Stream> stream = quotas.OpenStream("ada");
  ASSERT_TRUE(stream.ok());
  EXPECT_FALSE(quotas.OpenStream("ada").ok());
  EXPECT_TRUE(quotas.OpenStream("grace").ok());
}

TEST_F(QuotasTest, EndedStreamFreesQuota) {
  Quotas quotas = Make({.streams = 3});
  std::vector<Quotas::Stream> open;
  for (int i = 0; i < 3; ++i) open.push_back(quotas.OpenStream("ada").value());
  const absl::Status status = quotas.OpenStream("ada").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(rpc::RetryDelay(status), absl::ZeroDuration());
  EXPECT_THAT(std::string(status.message()), HasSubstr("ada has 3 streams open"));
  open.pop_back();
  EXPECT_TRUE(quotas.OpenStream("ada").ok());
}

TEST_F(QuotasTest, ZeroMeansNoLimit) {
  Quotas quotas = Make({.calls_per_second = 0, .streams = 0});
  std::vector<Quotas::Stream> open;
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(quotas.TakeCall("ada").ok());
    open.push_back(quotas.OpenStream("ada").value());
  }
}

// A thousand watchers, and a sweep that is submitted, listed and watched trial by trial.
TEST_F(QuotasTest, DefaultsAllowASweepAndItsWatchers) {
  Quotas quotas = Make({});
  std::vector<Quotas::Stream> open;
  for (int call = 0; call < 4950; ++call) ASSERT_TRUE(quotas.TakeCall("ada").ok());
  for (int watcher = 0; watcher < 1000; ++watcher) {
    ASSERT_TRUE(quotas.TakeCall("ada").ok());
    open.push_back(quotas.OpenStream("ada").value());
  }
}

}  // namespace
}  // namespace lengthwise::server
