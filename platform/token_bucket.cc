#include "platform/token_bucket.h"

#include <algorithm>

namespace lengthwise::platform {

absl::Duration TokenBucket::Take(absl::Time now, double amount) {
  if (now > last_) {
    // The first time, the elapsed time is infinite, which has no effect on a full bucket.
    level_ = std::min(burst_, level_ + rate_ * absl::ToDoubleSeconds(now - last_));
    last_ = now;
  }
  if (level_ >= amount) {
    level_ -= amount;
    return absl::ZeroDuration();
  }
  return absl::Seconds((amount - level_) / rate_);
}

}  // namespace lengthwise::platform
