// Checks of flags that several programs share. They return an error message, or an empty
// string if the text is valid. And the times that people give in days.
#ifndef LENGTHWISE_PLATFORM_FLAG_CHECKS_H_
#define LENGTHWISE_PLATFORM_FLAG_CHECKS_H_

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace lengthwise::platform {

// Validates --device.
inline std::string CheckDevice(const std::string& text) {
  int index = 0;
  if (text == "cpu" || text == "auto" || text == "cuda" ||
      (absl::StartsWith(text, "cuda:") && absl::SimpleAtoi(text.substr(5), &index) && index >= 0)) {
    return "";
  }
  return absl::StrCat("\"", text, "\" is not cpu, cuda:N or auto");
}

inline std::string CheckDuration(const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration()) return "";
  return absl::StrCat("\"", text, "\" is not a positive duration, such as 30s or 10m");
}

// Parses "90d", or a format of absl::ParseDuration ("12h"). nullopt if it is none or negative.
inline std::optional<absl::Duration> ParseDays(absl::string_view text) {
  absl::string_view days = text;
  double number = 0;
  absl::Duration time;
  const bool is_time = absl::ConsumeSuffix(&days, "d") && absl::SimpleAtod(days, &number);
  if (is_time) time = absl::Hours(24 * number);
  if ((is_time || absl::ParseDuration(text, &time)) && time >= absl::ZeroDuration()) return time;
  return std::nullopt;
}

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_FLAG_CHECKS_H_
