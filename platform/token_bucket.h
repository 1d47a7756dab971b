// A rate with a burst, as a pure object: time is an argument.
#ifndef LENGTHWISE_PLATFORM_TOKEN_BUCKET_H_
#define LENGTHWISE_PLATFORM_TOKEN_BUCKET_H_

#include "absl/time/time.h"

namespace lengthwise::platform {

// Holds at most `burst` calls, gains `rate` a second. Not thread-safe.
class TokenBucket {
 public:
  // `rate` above 0, `burst` at least 1. Full at the start.
  TokenBucket(double rate, double burst) : rate_(rate), burst_(burst), level_(burst) {}

  // Takes a call, or `amount` of what the rate counts: zero. Or takes nothing and says after how
  // long there will be as much. A clock that goes back takes nothing away and gives nothing twice.
  absl::Duration Take(absl::Time now, double amount = 1);

 private:
  double rate_;
  double burst_;
  double level_;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_TOKEN_BUCKET_H_
