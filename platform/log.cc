#include "platform/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "platform/printable_text.h"

namespace lengthwise::platform {
namespace {

bool as_json = false;
LogLevel least_severe = LogLevel::kInfo;

// Returns true if stderr goes to systemd's journal, which names it in $JOURNAL_STREAM.
bool IsJournal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status;
  return stream != nullptr && fstat(STDERR_FILENO, &status) == 0 &&
         absl::StrCat(status.st_dev, ":", status.st_ino) == stream;
}

// The journal takes a line's priority from here (sd-daemon(3)).
const char* JournalPrefix(LogLevel level) {
  static const bool is_journal = IsJournal();
  if (!is_journal) return "";
  return level == LogLevel::kError ? "<3>" : level == LogLevel::kWarning ? "<4>" : "<6>";
}

}  // namespace

void SetUpLog(absl::string_view format, absl::string_view least) {
  as_json = format == "json";
  for (const LogLevel level : absl::LogSeverities()) {
    if (absl::EqualsIgnoreCase(absl::LogSeverityName(level), least)) least_severe = level;
  }
}

std::string FormatLogLine(LogLevel level, absl::Time time, absl::string_view text, bool json) {
  const std::string when = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  const std::string line = PrintableLine(text);
  if (!json) return absl::StrCat(when, " ", absl::LogSeverityName(level), " ", line, "\n");
  return absl::StrCat("{\"time\":\"", when, "\",\"level\":\"", absl::LogSeverityName(level),
                      "\",\"text\":\"", absl::StrReplaceAll(line, {{"\\", "\\\\"}, {"\"", "\\\""}}),
                      "\"}\n");
}

void Log(LogLevel level, absl::string_view text) {
  if (level < least_severe) return;
  const std::string line =
      absl::StrCat(JournalPrefix(level), FormatLogLine(level, absl::Now(), text, as_json));
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
