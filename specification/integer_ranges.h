// Ranges in lists of integers: "0..9", "1..60 step 5".
#ifndef LENGTHWISE_SPECIFICATION_INTEGER_RANGES_H_
#define LENGTHWISE_SPECIFICATION_INTEGER_RANGES_H_

#include <cstdint>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"

namespace lengthwise::specification {

struct IntegerRange {
  absl::int128 first = 0;
  absl::int128 last = 0;  // included where the steps meet it; at least `first`
  absl::int128 step = 1;  // at least 1

  // Number of values, at least 1.
  absl::int128 size() const { return (last - first) / step + 1; }
};

// An integer that a 64-bit field, signed or not, can hold, also as "2e6" or "3.0"; nullopt for
// anything else.
std::optional<absl::int128> ParseInteger(absl::string_view text);

// Whether `text` is meant as a range, right or wrong.
bool LooksLikeRange(absl::string_view text);

// Nullopt where `text` is no range, is empty ("9..0") or has a step below 1. Nothing is expanded
// here.
std::optional<IntegerRange> ParseRange(absl::string_view text);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_INTEGER_RANGES_H_
