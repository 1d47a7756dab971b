// Splits a stream of chunks into lines with bounded memory.
#ifndef LENGTHWISE_TASKS_EXAMPLES_LINES_H_
#define LENGTHWISE_TASKS_EXAMPLES_LINES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::tasks::examples {

// Calls `take` with each line that is not blank, without its line ending, and its number from 1.
// For a line of more than `most_bytes`, calls it once with `too_long` and no text. Skips a leading
// byte order mark. Lines end with \n or \r\n; the last line may lack it. Not thread-safe.
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

#endif  // LENGTHWISE_TASKS_EXAMPLES_LINES_H_
