// TrialPast: what the scheduler decides by and the store keeps.
#ifndef LENGTHWISE_SERVER_SCHEDULING_TRIAL_PAST_H_
#define LENGTHWISE_SERVER_SCHEDULING_TRIAL_PAST_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace lengthwise::server {

// The part of a trial's history that decides what happens to it next.
struct TrialPast {
  // Number of leases so far.
  int32_t attempt = 0;
  // Number of attempts that failed temporarily, and for the last one the class of its reason
  // (FailureClass) and the step at which it failed.
  int32_t failures = 0;
  std::string failure;
  int64_t failure_step = 0;
  // Number of leases in a row whose worker was lost, without a new checkpoint since the first.
  int32_t losses = 0;
  // Number of times its lease was preempted.
  int32_t preemptions = 0;
  // Maximum number of trials in its pack, because a larger pack did not fit a worker's memory. 0:
  // no limit.
  int32_t pack_limit = 0;
  // Earliest time of the next lease. The epoch: at once.
  absl::Time not_before = absl::UnixEpoch();
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SCHEDULING_TRIAL_PAST_H_
