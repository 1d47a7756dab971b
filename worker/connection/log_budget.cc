#include "worker/connection/log_budget.h"

#include "absl/strings/str_cat.h"

namespace lengthwise::worker {
namespace {

// Bytes of the well-formed UTF-8 character at the start of `text`; 0 where there is none.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t size = 0;
  if (first >= 0xC2 && first <= 0xDF) size = 2;
  if (first >= 0xE0 && first <= 0xEF) size = 3;
  if (first >= 0xF0 && first <= 0xF4) size = 4;
  if (size == 0 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer than need be, surrogates, beyond the last character.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return size;
}

}  // namespace

std::string PlainText(absl::string_view text, size_t max_bytes) {
  std::string plain;
  size_t done = 0;
  while (done < text.size()) {
    const size_t size = CharacterBytes(text.substr(done));
    if (plain.size() + std::max<size_t>(size, 1) > max_bytes) {
      return absl::StrCat(plain, "... (", text.size() - done, " bytes more)");
    }
    if (size == 0) {
      plain += '?';
      ++done;
    } else {
      plain.append(text.data() + done, size);
      done += size;
    }
  }
  return plain;
}

bool LogBudget::Take(v1::LogLine& line) {
  if (++lines_ > kMaxLogLines + 1) return false;
  if (lines_ == kMaxLogLines + 1) {
    line.set_severity(v1::LogLine::WARNING);
    line.set_text(absl::StrCat("this attempt has written ", kMaxLogLines,
                               " lines; what follows is left out"));
    return true;
  }
  line.set_text(PlainText(line.text(), kMaxLogLineBytes));
  return true;
}

}  // namespace lengthwise::worker
