// Parses one line of a file of examples: {"input": ..., "target": ..., "mask": ..., "length": ...}.
#ifndef LENGTHWISE_TASKS_EXAMPLES_LINE_H_
#define LENGTHWISE_TASKS_EXAMPLES_LINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::tasks::examples {

// A list of values, or text. Reused for every line to avoid allocations.
struct LineValues {
  bool is_text = false;
  std::string text;
  std::vector<double> numbers;
  // True if every number is an integer with magnitude below 2^31.
  bool whole = true;

  void Clear();
};

struct Line {
  LineValues input;
  LineValues target;
  // 0 or 1 for each target value; empty if every value counts.
  std::vector<uint8_t> mask;
  // 0 if the line does not set it.
  int64_t length = 0;

  void Clear();
};

// Largest length; the same limit as in specification/checks.h.
inline constexpr int64_t kMostLength = 100'000;

// Parses one line without its newline. INVALID_ARGUMENT names the mistake, without the line number.
// The resulting text is valid UTF-8 without NUL.
absl::Status ParseLine(absl::string_view text, Line& line);

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_LINE_H_
