#include "tasks/examples/lines.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace lengthwise::tasks::examples {

void Lines::Give(absl::string_view line) {
  if (number_ == 1) absl::ConsumePrefix(&line, "\xEF\xBB\xBF");
  if (static_cast<int64_t>(line.size()) > most_bytes_) {
    take_(number_, {}, true);
    return;
  }
  absl::ConsumeSuffix(&line, "\r");
  if (absl::StripAsciiWhitespace(line).empty()) return;
  take_(number_, line, false);
}

void Lines::Add(absl::string_view chunk) {
  while (!chunk.empty()) {
    const size_t end = chunk.find('\n');
    const bool ends = end != absl::string_view::npos;
    const absl::string_view part = chunk.substr(0, end);
    if (skipping_) {
      // Skips the rest of a rejected line.
    } else if (!ends || !begun_.empty()) {
      begun_.append(part.data(), part.size());
      if (static_cast<int64_t>(begun_.size()) > most_bytes_ + 4) {
        take_(number_, {}, true);
        begun_ = {};
        skipping_ = true;
      } else if (ends) {
        Give(begun_);
        begun_.clear();
      }
    } else {
      Give(part);
    }
    if (!ends) return;
    skipping_ = false;
    ++number_;
    chunk.remove_prefix(end + 1);
  }
}

void Lines::End() {
  if (!skipping_ && !begun_.empty()) Give(begun_);
  begun_.clear();
}

}  // namespace lengthwise::tasks::examples
