// What a worker's events must fulfil whatever the state of their trial.
#ifndef LENGTHWISE_SERVER_COORDINATION_EVENT_CHECKS_H_
#define LENGTHWISE_SERVER_COORDINATION_EVENT_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::server {

// How much the log of an attempt may hold, in lines and in bytes of a line. A worker keeps below it
// (worker/connection/log_budget.h).
inline constexpr int64_t kMaxLogLines = 2000;
inline constexpr int64_t kMaxLogLineBytes = 16 << 10;

// Events of one trial and attempt, sequence numbers consecutive from at least 1, each with a fact
// that a worker may tell, columns of equal length, arrays of the size that is said beside them, log
// lines within their limit, an outcome only at the end. INVALID_ARGUMENT says which event is wrong.
absl::Status CheckEvents(const v1::StreamEventsRequest& request);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EVENT_CHECKS_H_
