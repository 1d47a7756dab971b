#include "worker/connection/lifetime.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/numbers.h"

namespace lengthwise::worker {

absl::Duration Lifetime(const std::string& flag, const char* slurm_job_end, absl::Time now) {
  absl::Duration lifetime;
  if (!flag.empty() && absl::ParseDuration(flag, &lifetime)) return lifetime;
  int64_t end = 0;
  if (slurm_job_end == nullptr || !absl::SimpleAtoi(slurm_job_end, &end) || end <= 0) {
    return absl::InfiniteDuration();
  }
  return std::max(absl::FromUnixSeconds(end) - now, absl::ZeroDuration());
}

absl::Duration DrainReserve(absl::Duration lifetime, absl::Duration drain_timeout) {
  if (lifetime == absl::InfiniteDuration()) return absl::ZeroDuration();
  return std::min(drain_timeout, lifetime / 10);
}

}  // namespace lengthwise::worker
