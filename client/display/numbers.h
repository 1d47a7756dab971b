// Formats numbers for people.
#ifndef LENGTHWISE_CLIENT_DISPLAY_NUMBERS_H_
#define LENGTHWISE_CLIENT_DISPLAY_NUMBERS_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/counted.h"

namespace lengthwise::client {

using platform::Counted;
using platform::FormatCount;

// "0:42", "12:05", "3:07:09", "2 d 4 h"; "?" for a negative or infinite time.
std::string FormatClock(absl::Duration duration);

// "10:00 ahead of", "0:07 behind".
std::string FormatClockDifference(absl::Duration ahead);

// A time of this machine's zone, which it names: "2026-11-29 10:00:00 CET".
std::string FormatLocalTime(absl::Time time);

// "2026-11-29T09:00:00+00:00".
std::string FormatUtcTime(absl::Time time);

// "just now", "42 s ago", "5 min ago", "3 h ago", "2 d ago".
std::string FormatAge(absl::Duration age);

// Stands for a number that was not measured.
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// An accuracy (0 to 1) in per cent with one decimal and without the sign: "88.3"; "–" for kNone.
std::string FormatPercent(double fraction);

// Four significant digits: "0.3125", "2.197", "1.2e-05".
std::string FormatLoss(double loss);

// "38.1", "1,204"; for steps a second.
std::string FormatRate(double per_second);

// "0 B", "1.5 KiB", "2.0 GiB".
std::string FormatBytes(int64_t bytes);

// Shortest text that parses to the same double: "0.001", "1e-04".
std::string FormatExact(double value);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_DISPLAY_NUMBERS_H_
