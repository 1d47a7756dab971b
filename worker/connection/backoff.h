// Defines deadlines on the steady clock (for platform::ConditionVariable) and the exponential
// back-off between retries of a call.
#ifndef LENGTHWISE_WORKER_CONNECTION_BACKOFF_H_
#define LENGTHWISE_WORKER_CONNECTION_BACKOFF_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

#include "absl/time/time.h"

namespace lengthwise::worker {

using TimePoint = std::chrono::steady_clock::time_point;

inline constexpr TimePoint kNever = TimePoint::max();

// Returns the time `duration` from now; kNever if that is more than a year ahead.
inline TimePoint After(absl::Duration duration) {
  if (duration > absl::Hours(24 * 365)) return kNever;
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(duration);
}

// Computes exponentially growing waits with jitter, so that a fleet of workers does not return to a
// restarted server in lockstep. Not thread-safe.
class Backoff {
 public:
  struct Options {
    // Upper bound of the first wait.
    absl::Duration initial = absl::Milliseconds(100);
    // Upper bound of every wait.
    absl::Duration maximum = absl::Seconds(5);
  };

  // Without `seed`, the first Next draws one: most calls succeed and need none.
  explicit Backoff(const Options& options, std::optional<uint32_t> seed = std::nullopt)
      : options_(options), next_(options.initial) {
    if (seed.has_value()) random_.emplace(*seed);
  }

  // Returns the next wait. The k-th call after a reset (from 0) draws uniformly from [1/2, 1] *
  // min(initial * 2^k, maximum).
  absl::Duration Next() {
    if (!random_.has_value()) random_.emplace(std::random_device()());
    const absl::Duration longest = std::min(next_, options_.maximum);
    next_ = std::min(2 * next_, options_.maximum);
    return longest * std::uniform_real_distribution<double>(0.5, 1.0)(*random_);
  }

  // Call after a success.
  void Reset() { next_ = options_.initial; }

 private:
  const Options options_;
  absl::Duration next_;
  std::optional<std::minstd_rand> random_;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_BACKOFF_H_
