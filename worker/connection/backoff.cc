#include "worker/connection/backoff.h"

#include <algorithm>

namespace lengthwise::worker {

Backoff::Backoff(const Options& options, uint32_t seed)
    : options_(options), next_(options.initial), random_(seed) {}

absl::Duration Backoff::Next() {
  const absl::Duration longest = std::min(next_, options_.maximum);
  next_ = std::min(2 * next_, options_.maximum);
  return longest * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
}

}  // namespace lengthwise::worker
