#include "worker/connection/lifetime.h"

#include "gtest/gtest.h"

namespace lengthwise::worker {
namespace {

TEST(LifetimeTest, FlagOverridesSlurmsEndTime) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  EXPECT_EQ(Lifetime("90m", "1000600", now), absl::Minutes(90));
  EXPECT_EQ(Lifetime("", "1000600", now), absl::Minutes(10));
  EXPECT_EQ(Lifetime("", "999000", now), absl::ZeroDuration());
}

TEST(LifetimeTest, IsInfiniteByDefault) {
  EXPECT_EQ(Lifetime("", nullptr), absl::InfiniteDuration());
  EXPECT_EQ(Lifetime("", "NONE"), absl::InfiniteDuration());
  EXPECT_EQ(Lifetime("", "0"), absl::InfiniteDuration());
}

TEST(LifetimeTest, DrainReserveIsAtMostATenth) {
  EXPECT_EQ(DrainReserve(absl::Hours(24), absl::Minutes(5)), absl::Minutes(5));
  EXPECT_EQ(DrainReserve(absl::Minutes(10), absl::Minutes(5)), absl::Minutes(1));
  EXPECT_EQ(DrainReserve(absl::InfiniteDuration(), absl::Minutes(5)), absl::ZeroDuration());
}

}  // namespace
}  // namespace lengthwise::worker
