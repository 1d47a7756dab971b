// From durations to points of the steady clock, which platform::ConditionVariable waits for.
#ifndef LENGTHWISE_WORKER_CONNECTION_DEADLINE_H_
#define LENGTHWISE_WORKER_CONNECTION_DEADLINE_H_

#include <chrono>

#include "absl/time/time.h"

namespace lengthwise::worker {

using TimePoint = std::chrono::steady_clock::time_point;

inline constexpr TimePoint kNever = TimePoint::max();

// The time after `duration` from now; kNever for what lies too far ahead to matter.
inline TimePoint After(absl::Duration duration) {
  if (duration > absl::Hours(24 * 365)) return kNever;
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(duration);
}

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_DEADLINE_H_
