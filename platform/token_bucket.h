// A token bucket: limits a rate and allows bursts. Time is an argument, so tests need no clock.
#ifndef LENGTHWISE_PLATFORM_TOKEN_BUCKET_H_
#define LENGTHWISE_PLATFORM_TOKEN_BUCKET_H_

#include <algorithm>

#include "absl/time/time.h"

namespace lengthwise::platform {

// Holds at most `burst` units and gains `rate` units per second. Not thread-safe.
class TokenBucket {
 public:
  // Starts full. `rate` is above 0, `burst` at least 1.
  TokenBucket(double rate, double burst) : rate_(rate), burst_(burst), level_(burst) {}

  // Takes `amount` units and returns zero, or takes nothing and returns the time until the bucket
  // holds that much. A clock that goes back neither removes units nor adds them twice.
  absl::Duration Take(absl::Time now, double amount = 1) {
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

  // Takes one unit, or the next one that nobody has reserved. Returns when the bucket holds it. Who
  // waits for a reserved unit gets it in the order of the calls, however many others ask.
  absl::Time Reserve(absl::Time now) {
    const absl::Duration wait = Take(now);
    if (wait > absl::ZeroDuration()) --level_;
    return now + wait;
  }

 private:
  double rate_;
  double burst_;
  double level_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_TOKEN_BUCKET_H_
