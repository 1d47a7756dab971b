// How much a trial's log may hold. A worker keeps below it (worker/connection/log_budget.h).
#ifndef LENGTHWISE_SERVER_COORDINATION_LOG_LIMITS_H_
#define LENGTHWISE_SERVER_COORDINATION_LOG_LIMITS_H_

#include <cstdint>

namespace lengthwise::server {

// Lines of one attempt.
inline constexpr int64_t kMaxLogLines = 2000;
// Bytes of one line.
inline constexpr int64_t kMaxLogLineBytes = 16 << 10;

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LOG_LIMITS_H_
