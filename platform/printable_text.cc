#include "platform/printable_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace lengthwise::platform {
namespace {

struct Character {
  size_t bytes = 1;
  uint32_t code_point = 0;
  bool valid = true;
};

Character First(absl::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte < 0x80) return {1, byte};
  const size_t length = byte >= 0xF5   ? 0
                        : byte >= 0xF0 ? 4
                        : byte >= 0xE0 ? 3
                        : byte >= 0xC2 ? 2
                                       : 0;
  if (length == 0 || length > text.size()) return {1, byte, false};
  uint32_t code_point = byte & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {1, byte, false};
    code_point = code_point << 6 | (next & 0x3F);
  }
  // Rejects overlong encodings, which could hide a control character.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < kLeast[length] || code_point > 0x10FFFF || surrogate) return {1, byte, false};
  return {length, code_point};
}

bool IsControl(uint32_t c) {
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c <= 0x9F) ||
         // Bidirectional marks; line and paragraph separators, embeddings and overrides; isolates.
         c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

// Returns the number of bytes before the first character that must be escaped.
size_t PrintableBytes(absl::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Character next = First(text.substr(bytes));
    if (!next.valid || IsControl(next.code_point)) break;
    bytes += next.bytes;
  }
  return bytes;
}

}  // namespace

std::string PrintableText(absl::string_view text) {
  std::string result;
  while (true) {
    const size_t plain = PrintableBytes(text);
    result.append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) return result;
    const Character control = First(text);
    const bool is_byte = !control.valid || control.code_point <= 0x7F;
    if (is_byte) {
      absl::StrAppendFormat(&result, "\\x%02x", control.code_point);
    } else {
      absl::StrAppendFormat(&result, "\\u%04x", control.code_point);
    }
    text.remove_prefix(control.bytes);
  }
}

bool IsPrintable(absl::string_view text) { return PrintableBytes(text) == text.size(); }

std::string PrintableLine(absl::string_view text) {
  return absl::StrReplaceAll(PrintableText(text), {{"\n", " "}, {"\t", " "}});
}

std::string ShellWord(absl::string_view text) {
  constexpr absl::string_view kPlain = "_-+=:,./@%";
  const bool plain = std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(kPlain, c);
  });
  if (plain && !text.empty()) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const Character next = First(text);
    if (!next.valid) return false;
    text.remove_prefix(next.bytes);
  }
  return true;
}

absl::string_view Utf8Prefix(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace lengthwise::platform
