// Writes the program's log: one line on stderr per entry, "2026-11-21T04:00:42.123Z WARNING text".
#ifndef LENGTHWISE_PLATFORM_LOG_H_
#define LENGTHWISE_PLATFORM_LOG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::platform {

enum class LogLevel { kInfo, kWarning, kError };

// Writes one line to stderr in a single write, so that lines of concurrent threads and processes do
// not interleave. Drops the line if the write fails: logging never fails its caller. Thread-safe.
void Log(LogLevel level, absl::string_view text);

inline void LogInfo(absl::string_view text) { Log(LogLevel::kInfo, text); }
inline void LogWarning(absl::string_view text) { Log(LogLevel::kWarning, text); }
inline void LogError(absl::string_view text) { Log(LogLevel::kError, text); }

// Returns the line that Log writes, including its newline. The text goes through PrintableLine, so
// that an entry is one line and untrusted text cannot control a terminal.
std::string FormatLogLine(LogLevel level, absl::Time time, absl::string_view text);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_LOG_H_
