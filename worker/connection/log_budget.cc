#include "absl/strings/str_cat.h"
#include "platform/printable_text.h"
#include "worker/connection/outbox.h"

namespace lengthwise::worker {

std::string PlainText(absl::string_view text, size_t max_bytes) {
  std::string plain = platform::PrintableText(text);
  if (plain.size() <= max_bytes) return plain;
  const absl::string_view shown = platform::Utf8Prefix(plain, max_bytes);
  return absl::StrCat(shown, "... (", plain.size() - shown.size(), " bytes more)");
}

bool LogBudget::Take(v1::LogLine& line) {
  if (++lines_ > kMaxLogLines + 1) return false;
  if (lines_ == kMaxLogLines + 1) {
    line.set_severity(v1::LogLine::WARNING);
    line.set_text(absl::StrCat("this attempt has written ", kMaxLogLines,
                               " lines; further lines are dropped"));
    return true;
  }
  line.set_text(PlainText(line.text(), kMaxLogLineBytes));
  return true;
}

}  // namespace lengthwise::worker
