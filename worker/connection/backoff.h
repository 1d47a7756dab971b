// How long to wait: until a point of the steady clock, which platform::ConditionVariable takes, and
// before the next try of a call.
#ifndef LENGTHWISE_WORKER_CONNECTION_BACKOFF_H_
#define LENGTHWISE_WORKER_CONNECTION_BACKOFF_H_

#include <chrono>
#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace lengthwise::worker {

using TimePoint = std::chrono::steady_clock::time_point;

inline constexpr TimePoint kNever = TimePoint::max();

// The time after `duration` from now; kNever for what lies too far ahead to matter.
inline TimePoint After(absl::Duration duration) {
  if (duration > absl::Hours(24 * 365)) return kNever;
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(duration);
}

// Waits exponentially longer, with jitter, so that a fleet of workers does not return to a
// restarted server in step. Not thread-safe.
class Backoff {
 public:
  struct Options {
    // Longest first wait.
    absl::Duration initial = absl::Milliseconds(100);
    // No wait is longer.
    absl::Duration maximum = absl::Seconds(5);
  };

  explicit Backoff(const Options& options, uint32_t seed = std::random_device()());

  // The k-th call after a reset (from 0) returns a uniform draw from [1/2, 1] * min(initial * 2^k,
  // maximum).
  absl::Duration Next();

  // After a success.
  void Reset() { next_ = options_.initial; }

 private:
  const Options options_;
  absl::Duration next_;
  std::minstd_rand random_;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_BACKOFF_H_
