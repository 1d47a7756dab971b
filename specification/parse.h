// From a text to the message it describes, with the conveniences that proto/specification.proto
// states.
#ifndef LENGTHWISE_SPECIFICATION_PARSE_H_
#define LENGTHWISE_SPECIFICATION_PARSE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "proto/specification.pb.h"

namespace lengthwise::specification {

// Nobody reads more, and finding suggestions for a hundred thousand misspelt names takes long.
inline constexpr size_t kEnoughProblems = 100;

struct Parsed {
  // What could be read; only as much as was written, without defaults. Values that could not be
  // read are left out, or stand as empty elements in lists, so that indices stay.
  v1::ExperimentSpecification specification;
  // All that could not be read; after kEnoughProblems the search may end.
  std::vector<catalogue::Problem> problems;
  // Paths that later checks should not speak about again: what could not be read, and the fields
  // that misspelt names were probably meant for.
  std::vector<std::string> unread;
  // False when the text as a whole is not readable: a syntax error, invalid UTF-8, control
  // characters, too deep or too large. Then `problems` says why and the specification is empty.
  bool readable = true;
};

// Never fails otherwise, whatever bytes `text` has; memory is bounded by a constant and the text's
// size. YAML and JSON give all problems at once; text format all unknown fields and the first other
// mistake.
Parsed Parse(v1::SpecificationText::Format format, absl::string_view text);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PARSE_H_
