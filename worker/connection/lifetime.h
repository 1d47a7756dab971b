// Determines how long a worker may use its machine, and when it starts to drain.
#ifndef LENGTHWISE_WORKER_CONNECTION_LIFETIME_H_
#define LENGTHWISE_WORKER_CONNECTION_LIFETIME_H_

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace lengthwise::worker {

// Returns `flag`, a duration. If it is empty, returns the time until `slurm_job_end`
// ($SLURM_JOB_END_TIME, in seconds since 1970; null if unset). Infinite if neither is given.
absl::Duration Lifetime(const std::string& flag, const char* slurm_job_end,
                        absl::Time now = absl::Now());

// Time reserved for draining before a lifetime ends: drain_timeout, but at most a tenth of the
// lifetime.
absl::Duration DrainReserve(absl::Duration lifetime, absl::Duration drain_timeout);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_LIFETIME_H_
