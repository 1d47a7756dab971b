// Files of examples, and their summary in a specification.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/line.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  using namespace lengthwise::tasks::examples;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Line line;
  const auto read = [&](int64_t number, absl::string_view one, bool too_long) {
    Must(number >= 1 && (!too_long || one.empty()), "a line that is too long has no text");
    if (too_long) return;
    Must(one.find('\n') == absl::string_view::npos, "a line has no newline");
    const absl::Status status = ParseLine(one, line);
    if (!status.ok()) {
      Must(status.code() == absl::StatusCode::kInvalidArgument, "a line is read or refused");
      Must(status.message().size() < 500, "a refusal is short");
      return;
    }
    Must(line.input.is_text ? !line.input.text.empty() : !line.input.numbers.empty(),
         "an example has an input");
    Must(line.length >= 0 && line.length <= kMostLength, "a length is in its range");
  };
  // Lines must not depend on how the bytes are chunked.
  uint64_t whole = 0, cut = 0;  // hashes, which wrap
  Lines at_once(1000, [&](int64_t number, absl::string_view one, bool too_long) {
    whole = 31 * whole + static_cast<uint64_t>(number) + one.size() + (too_long ? 7 : 0);
    read(number, one, too_long);
  });
  at_once.Add(text);
  at_once.End();
  Lines in_parts(1000, [&](int64_t number, absl::string_view one, bool too_long) {
    cut = 31 * cut + static_cast<uint64_t>(number) + one.size() + (too_long ? 7 : 0);
  });
  for (size_t first = 0; first < size; first += 3) in_parts.Add(text.substr(first, 3));
  in_parts.End();
  Must(whole == cut, "lines do not depend on chunks");
  if (const auto contents = ParseContents(text); contents.ok()) {
    const auto again = ParseContents(ToText(*contents));
    Must(again.ok() && *again == *contents, "contents read back the same");
  }
  return 0;
}
