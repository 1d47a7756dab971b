#include "proto/timestamps.h"

#include <algorithm>

#include "google/protobuf/util/time_util.h"

namespace lengthwise {

using google::protobuf::util::TimeUtil;

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  // Debian's Protocol Buffers ends the process for other times, which a worker's clock may give.
  const absl::Time representable =
      std::clamp(time, absl::FromUnixSeconds(TimeUtil::kTimestampMinSeconds),
                 absl::FromUnixSeconds(TimeUtil::kTimestampMaxSeconds));
  return TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(representable));
}

absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

}  // namespace lengthwise
