// A log line about something that a client can cause thousands of times a second.
#ifndef LENGTHWISE_PLATFORM_RATE_LIMITED_LOG_H_
#define LENGTHWISE_PLATFORM_RATE_LIMITED_LOG_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/log.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

// Writes the first line at once, then at most one per `interval`. A line that follows suppressed
// ones says how many they were; the suppressed ones after the last line are never mentioned.
// Thread-safe. Give each kind of line its own object.
class RateLimitedLog {
 public:
  explicit RateLimitedLog(LogLevel level, absl::Duration interval = absl::Seconds(10))
      : level_(level), interval_(absl::ToChronoNanoseconds(interval)) {}

  void Write(absl::string_view text);

  // The line that Write writes at `now`; absent for a suppressed one.
  std::optional<std::string> Admit(absl::string_view text,
                                   std::chrono::steady_clock::time_point now);

 private:
  const LogLevel level_;
  const std::chrono::nanoseconds interval_;
  Mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> last_ ABSL_GUARDED_BY(mutex_);
  int64_t suppressed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_RATE_LIMITED_LOG_H_
