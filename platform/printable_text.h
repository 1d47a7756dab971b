// Escapes untrusted text for printing, so that it cannot move the cursor of a terminal, or color,
// clear or reorder its text. Quotes words of commands that are printed for a user to paste.
#ifndef LENGTHWISE_PLATFORM_PRINTABLE_TEXT_H_
#define LENGTHWISE_PLATFORM_PRINTABLE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// Returns `text` with control characters escaped: C0 and DEL as \x1b; C1, line and paragraph
// separators, and bidirectional marks, embeddings, overrides and isolates as \u202e; bytes that are
// not UTF-8 as \xff. Keeps newlines and tabs; for a single line, use PrintableLine. Idempotent.
std::string PrintableText(absl::string_view text);

// True if PrintableText returns `text` unchanged.
bool IsPrintable(absl::string_view text);

// As PrintableText, with newlines and tabs replaced by spaces.
std::string PrintableLine(absl::string_view text);

// Returns `text` as one word of a shell command: in single quotes, unless it needs none.
std::string ShellWord(absl::string_view text);

// True if `text` consists of whole UTF-8 characters: none overlong, a surrogate or above U+10FFFF.
bool IsUtf8(absl::string_view text);

// The longest prefix of at most `max_bytes` that does not end inside a UTF-8 character.
absl::string_view Utf8Prefix(absl::string_view text, size_t max_bytes);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PRINTABLE_TEXT_H_
