// Splits bytes that come in chunks into lines, with bounded memory.
#ifndef LENGTHWISE_TASKS_EXAMPLES_LINES_H_
#define LENGTHWISE_TASKS_EXAMPLES_LINES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::tasks::examples {

// Calls `take` with each line that is not blank, without its end, and its number from 1; for a line
// of more than `most_bytes` once, with `too_long`, and without the line. A byte order mark at the
// beginning is skipped. Lines end with \n or \r\n; the last one may lack it. Not thread-safe.
class Lines {
 public:
  using Take = std::function<void(int64_t number, absl::string_view line, bool too_long)>;

  Lines(int64_t most_bytes, Take take) : most_bytes_(most_bytes), take_(std::move(take)) {}

  void Add(absl::string_view chunk);
  // After the last chunk.
  void End();

 private:
  void Give(absl::string_view line);

  const int64_t most_bytes_;
  const Take take_;
  std::string begun_;  // of a line whose end has not come
  bool skipping_ = false;
  int64_t number_ = 1;
};

}  // namespace lengthwise::tasks::examples

#endif  // LENGTHWISE_TASKS_EXAMPLES_LINES_H_
