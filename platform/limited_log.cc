#include "platform/limited_log.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lengthwise::platform {

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
