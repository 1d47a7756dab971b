// Checks of a worker's events that do not depend on the state of their trial.
#ifndef LENGTHWISE_SERVER_COORDINATION_EVENT_CHECKS_H_
#define LENGTHWISE_SERVER_COORDINATION_EVENT_CHECKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::server {

// Maximum number of events in a request. A worker sends 256. Storing more than this would keep
// other calls waiting.
inline constexpr int kMaxEvents = 10'000;
// Maximum number of trials in a request.
inline constexpr int kMaxParts = 256;
// Limits of an attempt's log: number of lines, and bytes of a line. Workers stay below them
// (worker/connection/outbox.h).
inline constexpr int64_t kMaxLogLines = 2000;
inline constexpr int64_t kMaxLogLineBytes = 16 << 10;

// The events of a trial in a batch; at least one.
using Events = absl::Span<const v1::Event* const>;
// The parts of a batch, in order. INVALID_ARGUMENT if it is empty or too large.
absl::StatusOr<std::vector<Events>> PartsOf(const v1::StreamEventsRequest& request);

// Checks that all events of a part belong to one attempt; that sequence numbers are consecutive and
// start at 1 or above; that each has a fact that workers may send; that columns have equal length
// and arrays the size stated beside them; that log lines are within their limit; and that an
// outcome comes last. INVALID_ARGUMENT names the first event that is wrong, and its problem.
absl::Status CheckEvents(Events events);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EVENT_CHECKS_H_
