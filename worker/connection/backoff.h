// How long to wait before the next try: exponentially longer, with jitter, so that a fleet of
// workers does not return to a restarted server in step.
#ifndef LENGTHWISE_WORKER_CONNECTION_BACKOFF_H_
#define LENGTHWISE_WORKER_CONNECTION_BACKOFF_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace lengthwise::worker {

// Not thread-safe.
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
