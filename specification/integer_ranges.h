// Parses ranges in lists of integers: "0..9", "1..60 step 5".
#ifndef LENGTHWISE_SPECIFICATION_INTEGER_RANGES_H_
#define LENGTHWISE_SPECIFICATION_INTEGER_RANGES_H_

#include <cstdint>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"

namespace lengthwise::specification {

struct IntegerRange {
  absl::int128 first = 0;
  absl::int128 last = 0;  // inclusive if a step lands on it; at least `first`
  absl::int128 step = 1;  // at least 1

  // Number of values, at least 1.
  absl::int128 size() const { return (last - first) / step + 1; }
};

// Parses an integer in the range of int64 or uint64, also in the forms "2e6" and "3.0". Nullopt
// otherwise.
std::optional<absl::int128> ParseInteger(absl::string_view text);

// Returns true if `text` was meant as a range, valid or not.
bool LooksLikeRange(absl::string_view text);

// Nullopt if `text` is not a range, is empty ("9..0") or has a step below 1. Does not expand the
// range.
std::optional<IntegerRange> ParseRange(absl::string_view text);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_INTEGER_RANGES_H_
