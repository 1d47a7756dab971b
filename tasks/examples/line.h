// One line of a file of examples: {"input": ..., "target": ..., "mask": ..., "length": ...}.
#ifndef LENGTHWISE_TASKS_EXAMPLES_LINE_H_
#define LENGTHWISE_TASKS_EXAMPLES_LINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::tasks::examples {

// Values of one list, or text. Reused from line to line, so that a line costs no allocation.
struct LineValues {
  bool is_text = false;
  std::string text;
  std::vector<double> numbers;
  // Every number is an integer of less than 2^31 in magnitude.
  bool whole = true;

  void Clear();
};

struct Line {
  LineValues input;
  LineValues target;
  // 0 or 1 for each value of the target; empty where all count.
  std::vector<uint8_t> mask;
  // 0 where the line does not say.
  int64_t length = 0;

  void Clear();
};

// Lengths are at most this (specification/checks.h has the same limit).
inline constexpr int64_t kMostLength = 100'000;

// Reads one line without its newline. INVALID_ARGUMENT says what is wrong, without the line's
// number. Text is valid UTF-8 without NUL.
absl::Status ParseLine(absl::string_view text, Line& line);

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_LINE_H_
