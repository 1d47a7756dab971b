// Numbers of an experiment's trials by state, and sums over states.
#ifndef LENGTHWISE_PROTO_TRIAL_COUNTS_H_
#define LENGTHWISE_PROTO_TRIAL_COUNTS_H_

#include <cstdint>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise {

inline int64_t UnendedTrials(const v1::TrialCounts& counts) {
  return int64_t{counts.queued()} + counts.running();
}

inline int64_t AllTrials(const v1::TrialCounts& counts) {
  return UnendedTrials(counts) + counts.succeeded() + counts.failed() + counts.cancelled();
}

// Counts trials of one state. Its field has the state's number.
inline void CountTrials(v1::TrialState state, int32_t trials, v1::TrialCounts& counts) {
  const auto* const field = v1::TrialCounts::descriptor()->FindFieldByNumber(state);
  if (field == nullptr) return;
  const google::protobuf::Reflection& reflection = *counts.GetReflection();
  reflection.SetInt32(&counts, field, reflection.GetInt32(counts, field) + trials);
}

}  // namespace lengthwise

#endif  // LENGTHWISE_PROTO_TRIAL_COUNTS_H_
