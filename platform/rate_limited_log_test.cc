#include "platform/rate_limited_log.h"

#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

using std::chrono::seconds;

TEST(RateLimitedLog, WritesOneLinePerIntervalAndCountsTheRest) {
  RateLimitedLog log(LogLevel::kWarning, absl::Seconds(10));
  const std::chrono::steady_clock::time_point start;
  EXPECT_EQ(log.Admit("refused", start), "refused");
  for (int call = 0; call < 1000; ++call) {
    EXPECT_EQ(log.Admit("refused", start + seconds(9)), std::nullopt);
  }
  EXPECT_EQ(log.Admit("refused", start + seconds(10)),
            "refused (1000 more like this since the last such line)");
  EXPECT_EQ(log.Admit("refused", start + seconds(20)), "refused");
}

}  // namespace
}  // namespace lengthwise::platform
