// Log lines for people: one line on stderr per entry, "2026-11-21T04:00:42.123Z WARNING text".
#ifndef LENGTHWISE_PLATFORM_LOG_H_
#define LENGTHWISE_PLATFORM_LOG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::platform {

enum class LogLevel { kInfo, kWarning, kError };

// Writes one line to stderr with a single write, so that lines of several threads, and of several
// processes that share a terminal, do not mix. Thread-safe. A line that cannot be written is lost:
// logging never fails its caller.
void Log(LogLevel level, absl::string_view text);

inline void LogInfo(absl::string_view text) { Log(LogLevel::kInfo, text); }
inline void LogWarning(absl::string_view text) { Log(LogLevel::kWarning, text); }
inline void LogError(absl::string_view text) { Log(LogLevel::kError, text); }

// The line that Log writes, with its newline: PrintableLine of the text, so that one entry is one
// line and text that came from elsewhere cannot steer a terminal.
std::string FormatLogLine(LogLevel level, absl::Time time, absl::string_view text);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_LOG_H_
