// Derives a worker's id, and the time for which it may use its machine, from flags and environment.
#ifndef LENGTHWISE_WORKER_CONNECTION_STARTUP_H_
#define LENGTHWISE_WORKER_CONNECTION_STARTUP_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace lengthwise::worker {

// INVALID_ARGUMENT unless the id is what WorkerDescription accepts: [a-z0-9-]+, at most 60
// characters.
absl::Status ValidateWorkerId(absl::string_view id);

// Returns an id from host, device and process, such as "n07-cuda0-4711". It is always valid:
// characters that an id cannot hold become "-", and a long host name is truncated.
std::string MakeWorkerId(absl::string_view host, absl::string_view device, pid_t process);

// Returns `flag`, a duration. If it is empty, returns the time until `slurm_job_end`
// ($SLURM_JOB_END_TIME, in seconds since 1970; null if unset). Infinite if neither is given.
absl::Duration Lifetime(const std::string& flag, const char* slurm_job_end,
                        absl::Time now = absl::Now());

// Time reserved for draining before a lifetime ends: drain_timeout, but at most a tenth of the
// lifetime.
absl::Duration DrainReserve(absl::Duration lifetime, absl::Duration drain_timeout);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_STARTUP_H_
