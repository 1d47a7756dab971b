// Converts between absl::Time and the timestamps of messages, which come from several clocks.
#ifndef LENGTHWISE_PROTO_TIMESTAMPS_H_
#define LENGTHWISE_PROTO_TIMESTAMPS_H_

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace lengthwise {

// Rounds down to whole microseconds, the resolution of the store. Times before the year 1 and after
// 9999, which a timestamp cannot have, become the first and the last that it can.
google::protobuf::Timestamp ToTimestamp(absl::Time time);

// Exact.
absl::Time ToTime(const google::protobuf::Timestamp& timestamp);

// Smallest difference between two machines' clocks that counts as a fault. Smaller ones may be the
// delay of a message.
inline constexpr absl::Duration kWrongClock = absl::Seconds(5);

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_TIMESTAMPS_H_
