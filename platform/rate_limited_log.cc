#include "platform/rate_limited_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lengthwise::platform {

std::optional<std::string> RateLimitedLog::Admit(absl::string_view text,
                                                 std::chrono::steady_clock::time_point now) {
  MutexLock lock(mutex_);
  if (last_.has_value() && now - *last_ < interval_) {
    ++suppressed_;
    return std::nullopt;
  }
  last_ = now;
  const int64_t suppressed = std::exchange(suppressed_, 0);
  if (suppressed == 0) return std::string(text);
  return absl::StrCat(text, " (", suppressed, " more like this since the last such line)");
}

void RateLimitedLog::Write(absl::string_view text) {
  const std::optional<std::string> line = Admit(text, std::chrono::steady_clock::now());
  if (line.has_value()) Log(level_, *line);
}

}  // namespace lengthwise::platform
