#include "proto/timestamps.h"

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

TEST(TimestampsTest, ReadsNanoseconds) {
  google::protobuf::Timestamp timestamp;
  EXPECT_EQ(ToTime(timestamp), absl::UnixEpoch());
  timestamp.set_seconds(7);
  timestamp.set_nanos(5);
  EXPECT_EQ(ToTime(timestamp), absl::FromUnixSeconds(7) + absl::Nanoseconds(5));
}

}  // namespace
}  // namespace lengthwise
