#include "proto/timestamps.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace lengthwise {
namespace {

TEST(TimestampsTest, RoundsDownToMicroseconds) {
  const absl::Time time = absl::FromUnixSeconds(1'700'000'000) + absl::Nanoseconds(123'456'789);
  const google::protobuf::Timestamp timestamp = ToTimestamp(time);
  EXPECT_EQ(timestamp.seconds(), 1'700'000'000);
  EXPECT_EQ(timestamp.nanos(), 123'456'000);
  EXPECT_EQ(ToTime(timestamp), time - absl::Nanoseconds(789));
}

TEST(TimestampsTest, KeepsTimesBefore1970) {
  const absl::Time time = absl::UnixEpoch() - absl::Milliseconds(250);
  const google::protobuf::Timestamp timestamp = ToTimestamp(time);
  EXPECT_EQ(timestamp.seconds(), -1);
  EXPECT_EQ(timestamp.nanos(), 750'000'000) << "nanos are never negative";
  EXPECT_EQ(ToTime(timestamp), time);
}

// A worker may send any number of seconds, which the server adds to its own time.
TEST(TimestampsTest, KeepsTimesWithinTheYearsOfATimestamp) {
  for (const absl::Time time : {absl::InfinitePast(), absl::FromUnixSeconds(INT64_MIN)}) {
    EXPECT_EQ(ToTimestamp(time).seconds(), -62'135'596'800) << "0001-01-01T00:00:00Z";
  }
  for (const absl::Time time : {absl::InfiniteFuture(), absl::FromUnixSeconds(INT64_MAX)}) {
    EXPECT_EQ(ToTimestamp(time).seconds(), 253'402'300'799) << "9999-12-31T23:59:59Z";
  }
}

TEST(TimestampsTest, ReadsNanoseconds) {
  google::protobuf::Timestamp timestamp;
  EXPECT_EQ(ToTime(timestamp), absl::UnixEpoch());
  timestamp.set_seconds(7);
  timestamp.set_nanos(5);
  EXPECT_EQ(ToTime(timestamp), absl::FromUnixSeconds(7) + absl::Nanoseconds(5));
}

}  // namespace
}  // namespace lengthwise
