#include "platform/log.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "platform/printable_text.h"

namespace lengthwise::platform {
namespace {

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
  }
  return "ERROR";
}

}  // namespace

std::string FormatLogLine(LogLevel level, absl::Time time, absl::string_view text) {
  return absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ ", time, absl::UTCTimeZone()),
                      LevelName(level), " ", PrintableLine(text), "\n");
}

void Log(LogLevel level, absl::string_view text) {
  const std::string line = FormatLogLine(level, absl::Now(), text);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace lengthwise::platform
