// Numbers of an experiment's trials by state, and sums over states.
#ifndef LENGTHWISE_PROTO_TRIAL_COUNTS_H_
#define LENGTHWISE_PROTO_TRIAL_COUNTS_H_

#include <cstdint>

#include "proto/experiment_service.pb.h"

namespace lengthwise {

inline int64_t UnendedTrials(const v1::TrialCounts& counts) {
  return int64_t{counts.queued()} + counts.running();
}

inline int64_t AllTrials(const v1::TrialCounts& counts) {
  return UnendedTrials(counts) + counts.succeeded() + counts.failed() + counts.cancelled();
}

// Counts trials of one state.
inline void CountTrials(v1::TrialState state, int32_t trials, v1::TrialCounts& counts) {
  switch (state) {
    case v1::QUEUED:
      return counts.set_queued(counts.queued() + trials);
    case v1::RUNNING:
      return counts.set_running(counts.running() + trials);
    case v1::SUCCEEDED:
      return counts.set_succeeded(counts.succeeded() + trials);
    case v1::FAILED:
      return counts.set_failed(counts.failed() + trials);
    case v1::CANCELLED:
      return counts.set_cancelled(counts.cancelled() + trials);
    default:
      return;
  }
}

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_TRIAL_COUNTS_H_
