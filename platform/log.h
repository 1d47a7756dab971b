// Writes the program's log: one line on stderr per entry, "2026-11-21T04:00:42.123Z WARNING text".
#ifndef LENGTHWISE_PLATFORM_LOG_H_
#define LENGTHWISE_PLATFORM_LOG_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/log_severity.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::platform {

using LogLevel = absl::LogSeverity;

// Writes one line to stderr in a single write, so that lines of concurrent threads and processes do
// not interleave. Drops the line if the write fails: logging never fails its caller. systemd's
// journal gets the level as the line's priority. Thread-safe.
void Log(LogLevel level, absl::string_view text);

// The text is absl::StrCat of the arguments.
template <typename... Text>
void LogInfo(const Text&... text) {
  Log(LogLevel::kInfo, absl::StrCat(text...));
}
template <typename... Text>
void LogWarning(const Text&... text) {
  Log(LogLevel::kWarning, absl::StrCat(text...));
}
template <typename... Text>
void LogError(const Text&... text) {
  Log(LogLevel::kError, absl::StrCat(text...));
}

// Makes Log leave out entries below the severity `least` ("info", "warning", "error"), and write
// the others as JSON objects with the fields time, level and text if `format` is "json". Call it
// before there are other threads.
void SetUpLog(absl::string_view format, absl::string_view least);

// Returns the line that Log writes, including its newline. The text goes through PrintableLine, so
// that an entry is one line and untrusted text cannot control a terminal.
std::string FormatLogLine(LogLevel level, absl::Time time, absl::string_view text,
                          bool json = false);

// Rate-limits log lines that unauthenticated callers can trigger: writes at most kLines lines per
// interval and counts the rest. The first line of a later interval has the number of
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

#endif  // LENGTHWISE_PLATFORM_LOG_H_
