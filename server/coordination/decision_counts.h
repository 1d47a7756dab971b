// How often the scheduler decided what, and why: for the metrics.
#ifndef LENGTHWISE_SERVER_COORDINATION_DECISION_COUNTS_H_
#define LENGTHWISE_SERVER_COORDINATION_DECISION_COUNTS_H_

#include <cstdint>

#include "proto/event.pb.h"
#include "server/coordinator.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// All that is ever counted, at 0: a rate needs a first value.
Coordinator::DecisionCounts NoDecisions();

// `before` is the trial as it was; `outcome` what its attempt told, null where it told none.
void CountTrialChange(const TrialChange& change, const TrialRecord& before,
                      const v1::Outcome* outcome, Coordinator::DecisionCounts& counts);
void CountLeaseChange(const LeaseChange& change, Coordinator::DecisionCounts& counts);

void Add(const Coordinator::DecisionCounts& more, Coordinator::DecisionCounts& counts);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_DECISION_COUNTS_H_
