#include "platform/token_bucket.h"

#include "gtest/gtest.h"

namespace lengthwise::platform {
namespace {

TEST(TokenBucket, GivesItsBurstAtOnceAndThenItsRate) {
  absl::Time now = absl::UnixEpoch();
  TokenBucket bucket(/*rate=*/10, /*burst=*/3);
  for (int call = 0; call < 3; ++call) EXPECT_EQ(bucket.Take(now), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(now), absl::Milliseconds(100));
  now += absl::Milliseconds(60);
  EXPECT_NEAR(absl::ToDoubleSeconds(bucket.Take(now)), 0.04, 1e-9);
  now += absl::Milliseconds(41);
  EXPECT_EQ(bucket.Take(now), absl::ZeroDuration());
}

// In any time t, at most burst + rate t calls succeed. A caller that waits for the returned time
// succeeds.
TEST(TokenBucket, WaitingAsToldYieldsTheRate) {
  absl::Time now = absl::UnixEpoch();
  TokenBucket bucket(50, 5);
  for (int call = 0; call < 1005; ++call) {
    const absl::Duration wait = bucket.Take(now);
    if (wait == absl::ZeroDuration()) continue;
    now += wait + absl::Microseconds(1);
    EXPECT_EQ(bucket.Take(now), absl::ZeroDuration()) << call;
  }
  EXPECT_NEAR(absl::ToDoubleSeconds(now - absl::UnixEpoch()), 1000 / 50.0, 0.01);
}

TEST(TokenBucket, TakesAllOrNothing) {
  absl::Time now = absl::UnixEpoch();
  TokenBucket bucket(/*rate=*/10, /*burst=*/100);
  EXPECT_EQ(bucket.Take(now, 70), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(now, 50), absl::Seconds(2));
  EXPECT_EQ(bucket.Take(now, 30), absl::ZeroDuration());
  now += absl::Seconds(5);
  EXPECT_EQ(bucket.Take(now, 50), absl::ZeroDuration());
}

TEST(TokenBucket, IdleTimeFillsAtMostTheBurst) {
  absl::Time now = absl::UnixEpoch();
  TokenBucket bucket(10, 2);
  bucket.Take(now);
  now += absl::Hours(10);
  EXPECT_EQ(bucket.Take(now), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(now), absl::ZeroDuration());
  EXPECT_GT(bucket.Take(now), absl::ZeroDuration());
}

TEST(TokenBucket, BackwardClockAddsNothing) {
  const absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  TokenBucket bucket(1, 1);
  EXPECT_EQ(bucket.Take(now), absl::ZeroDuration());
  EXPECT_EQ(bucket.Take(now - absl::Minutes(30)), absl::Seconds(1));
  EXPECT_EQ(bucket.Take(now), absl::Seconds(1));
  EXPECT_EQ(bucket.Take(now + absl::Seconds(1)), absl::ZeroDuration());
}

TEST(TokenBucket, ReservedUnitsComeInTurn) {
  const absl::Time now = absl::UnixEpoch();
  TokenBucket bucket(2, 1);
  EXPECT_EQ(bucket.Reserve(now), now);
  EXPECT_EQ(bucket.Reserve(now), now + absl::Seconds(0.5));
  EXPECT_EQ(bucket.Reserve(now + absl::Seconds(0.25)), now + absl::Seconds(1));
  EXPECT_EQ(bucket.Take(now + absl::Seconds(1)), absl::Seconds(0.5));
}

}  // namespace
}  // namespace lengthwise::platform
