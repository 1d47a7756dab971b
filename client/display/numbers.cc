#include "client/display/numbers.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lengthwise::client {

std::string FormatClock(absl::Duration duration) {
  if (duration < absl::ZeroDuration() || duration == absl::InfiniteDuration()) return "?";
  const int64_t seconds = absl::ToInt64Seconds(duration + absl::Milliseconds(500));
  if (seconds < 3600) return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
  if (seconds < 48 * 3600) {
    return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return absl::StrFormat("%d d %d h", seconds / 86400, seconds / 3600 % 24);
}

std::string FormatClockDifference(absl::Duration ahead) {
  return absl::StrCat(FormatClock(absl::AbsDuration(ahead)),
                      ahead > absl::ZeroDuration() ? " ahead of" : " behind");
}

std::string FormatLocalTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S %Z", time, absl::LocalTimeZone());
}

std::string FormatUtcTime(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

std::string FormatAge(absl::Duration age) {
  const int64_t seconds = absl::ToInt64Seconds(age);
  if (seconds < 1) return "just now";
  if (seconds < 120) return absl::StrCat(seconds, " s ago");
  if (seconds < 7200) return absl::StrCat(seconds / 60, " min ago");
  if (seconds < 48 * 3600) return absl::StrCat(seconds / 3600, " h ago");
  return absl::StrCat(seconds / 86400, " d ago");
}

std::string FormatPercent(double fraction) {
  return std::isnan(fraction) ? "–" : absl::StrFormat("%.1f", fraction * 100);
}

std::string FormatLoss(double loss) {
  if (!std::isfinite(loss)) return absl::StrCat(loss);
  if (loss == 0) return "0";
  const double magnitude = std::fabs(loss);
  if (magnitude < 1e-3) return absl::StrFormat("%.1e", loss);
  if (magnitude < 1) return absl::StrFormat("%.4f", loss);
  if (magnitude < 10) return absl::StrFormat("%.3f", loss);
  return absl::StrFormat("%.1f", loss);
}

std::string FormatRate(double per_second) {
  if (per_second < 100) return absl::StrFormat("%.1f", per_second);
  return FormatCount(std::llround(per_second));
}

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1023.95) break;  // larger values would print as 1024.0
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.1f %s", value, unit);
}

std::string FormatExact(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

}  // namespace lengthwise::client
