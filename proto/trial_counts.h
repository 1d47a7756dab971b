// Sums of an experiment's trials over states.
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

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_TRIAL_COUNTS_H_
