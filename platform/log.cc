#include "platform/log.h"

#include <unistd.h>

#include <utility>

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

LimitedLog::LimitedLog(absl::Duration interval, Clock now, Write write)
    : interval_(absl::ToChronoNanoseconds(interval)),
      now_(std::move(now)),
      write_(std::move(write)),
      start_(now_() - interval_) {}

void LimitedLog::Add(LogLevel level, absl::string_view text) {
  std::string line(text);
  {
    MutexLock lock(mutex_);
    const auto now = now_();
    if (now - start_ >= interval_) {
      start_ = now;
      written_ = 0;
      const int64_t left_out = std::exchange(left_out_, 0);
      if (left_out > 0) absl::StrAppend(&line, " (", left_out, " similar lines were suppressed)");
    }
    if (written_ == kLines) {
      ++left_out_;
      return;
    }
    ++written_;
  }
  write_(level, line);
}

}  // namespace lengthwise::platform
