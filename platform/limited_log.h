// Rate-limits log lines that unauthenticated callers can trigger: writes some and counts the rest.
#ifndef LENGTHWISE_PLATFORM_LIMITED_LOG_H_
#define LENGTHWISE_PLATFORM_LIMITED_LOG_H_

#include <chrono>
#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/log.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

// Writes at most kLines lines per interval. The first line of a later interval has the number of
// suppressed lines. Thread-safe.
class LimitedLog {
 public:
  static constexpr int64_t kLines = 5;
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  using Write = std::function<void(LogLevel, absl::string_view)>;

  // Only tests pass `now` and `write`.
  explicit LimitedLog(absl::Duration interval, Clock now = std::chrono::steady_clock::now,
                      Write write = Log);

  void Warning(absl::string_view text) { Add(LogLevel::kWarning, text); }
  void Error(absl::string_view text) { Add(LogLevel::kError, text); }

 private:
  void Add(LogLevel level, absl::string_view text);

  const std::chrono::nanoseconds interval_;
  const Clock now_;
  const Write write_;
  Mutex mutex_;
  std::chrono::steady_clock::time_point start_ ABSL_GUARDED_BY(mutex_);
  int64_t written_ ABSL_GUARDED_BY(mutex_) = kLines;  // of the interval
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_LIMITED_LOG_H_
