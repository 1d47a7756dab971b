// Text of others, fit to be printed: it cannot move a cursor, colour, clear or reorder a terminal.
#ifndef LENGTHWISE_PLATFORM_PRINTABLE_TEXT_H_
#define LENGTHWISE_PLATFORM_PRINTABLE_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// Returns `text` with every control character written out: C0 and DEL as \x1b, C1, line and
// paragraph separators, and the marks, embeddings, overrides and isolates that reorder
// bidirectional text as \u202e. Newlines and tabs stay: whoever prints one line replaces them.
// Bytes that are not UTF-8 are written out as \xff. What the function returned is returned
// unchanged.
std::string PrintableText(absl::string_view text);

// True if PrintableText returns `text` unchanged.
bool IsPrintable(absl::string_view text);

// PrintableText on one line: newlines and tabs become spaces.
std::string PrintableLine(absl::string_view text);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PRINTABLE_TEXT_H_
