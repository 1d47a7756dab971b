// Lines of a file of examples: splits a file into lines with bounded memory, and parses one line,
// {"input": ..., "target": ..., "mask": ..., "length": ..., "positions": ...}.
#ifndef LENGTHWISE_TASKS_EXAMPLES_LINE_H_
#define LENGTHWISE_TASKS_EXAMPLES_LINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::tasks::examples {

// A list of values, or text.
struct LineValues {
  bool is_text = false;
  std::string text;
  std::vector<double> numbers;
  // The first number that is not an integer with magnitude below 2^31, as written; empty if all
  // are.
  std::string not_whole;
};

struct Line {
  LineValues input;
  LineValues target;
  // 0 or 1 for each target value; without a mask, every value counts.
  std::vector<uint8_t> mask;
  bool has_mask = false;
  // 0 if the line does not set it.
  int64_t length = 0;
  // Ids of the values of input and target.
  std::vector<int32_t> positions;
  bool has_positions = false;
};

// Largest length; the same limit as in specification/checks.h.
inline constexpr int64_t kMostLength = 100'000;
// Largest id of a position; the same limit as that of an encoding's max_position.
inline constexpr int32_t kMostPosition = (1 << 20) - 1;

// Parses one line without its newline. INVALID_ARGUMENT names the mistake, without the line number.
// The resulting text is valid UTF-8 without NUL.
absl::Status ParseLine(absl::string_view text, Line& line);

// Splits a stream of chunks into lines: calls `take` with each line that is not blank, without its
// line ending, and its number from 1. For a line of more than `most_bytes`, calls it once with
// `too_long` and no text. Skips a leading byte order mark. Lines end with \n or \r\n; the last line
// may lack it. Not thread-safe.
class Lines {
 public:
  using Take = std::function<void(int64_t number, absl::string_view line, bool too_long)>;

  Lines(int64_t most_bytes, Take take) : most_bytes_(most_bytes), take_(std::move(take)) {}

  void Add(absl::string_view chunk);
  // Call after the last chunk.
  void End();

 private:
  void Give(absl::string_view line);

  const int64_t most_bytes_;
  const Take take_;
  std::string begun_;  // the start of an unfinished line
  bool skipping_ = false;
  int64_t number_ = 1;
};

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_LINE_H_
