#include "specification/integer_ranges.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/numbers.h"

namespace lengthwise::specification {

std::optional<absl::int128> ParseInteger(absl::string_view text) {
  if (int64_t number; absl::SimpleAtoi(text, &number)) return number;
  if (uint64_t number; absl::SimpleAtoi(text, &number)) return number;
  // Above 2^53, adjacent integers share a double, so the value would be ambiguous.
  double number;
  if (absl::SimpleAtod(text, &number) && std::trunc(number) == number &&
      std::abs(number) <= 0x1p53) {
    return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

bool LooksLikeRange(absl::string_view text) { return text.find("..") != text.npos; }

std::optional<IntegerRange> ParseRange(absl::string_view text) {
  IntegerRange range;
  const size_t dots = text.find("..");
  if (dots == text.npos) return std::nullopt;
  const std::optional<absl::int128> first = ParseInteger(text.substr(0, dots));
  absl::string_view rest = text.substr(dots + 2);
  const size_t step_word = rest.find("step");
  if (step_word != rest.npos) {
    const std::optional<absl::int128> step = ParseInteger(rest.substr(step_word + 4));
    if (!step || *step < 1) return std::nullopt;
    range.step = *step;
    rest = rest.substr(0, step_word);
  }
  const std::optional<absl::int128> last = ParseInteger(rest);
  if (!first || !last || *last < *first) return std::nullopt;
  range.first = *first;
  range.last = *last;
  return range;
}

}  // namespace lengthwise::specification
