#include "platform/token_bucket.h"

#include <algorithm>

namespace lengthwise::platform {

absl::Duration TokenBucket::Take(absl::Time now, double amount) {
  if (now > last_) {
    // Infinite the first time, which fills a bucket that is full.
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
