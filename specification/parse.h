// Parses the text of a specification into its message, including the shorthands that
// proto/specification.proto documents.
#ifndef LENGTHWISE_SPECIFICATION_PARSE_H_
#define LENGTHWISE_SPECIFICATION_PARSE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "catalogue/entry.h"
#include "proto/specification.pb.h"

namespace lengthwise::specification {

// Enough for any reader. Also bounds the cost of suggestions for a text with a hundred thousand
// misspelt names.
inline constexpr size_t kEnoughProblems = 100;

struct Parsed {
  // The readable part of the text, without defaults. Unreadable values are left out; in lists they
  // become empty elements, so that indices stay valid.
  v1::ExperimentSpecification specification;
  // Every part that could not be read. Parsing may stop after kEnoughProblems.
  std::vector<catalogue::Problem> problems;
  // Fields that later checks must not report again: fields that could not be read, and the likely
  // targets of misspelt names.
  std::vector<std::string> unread;
  // False if the text as a whole is unreadable: a syntax error, invalid UTF-8, control characters,
  // too deep or too large. Then `problems` holds the reason and the specification is empty.
  bool readable = true;
};

// Accepts any bytes. Memory is bounded by a constant and the size of `text`. YAML and JSON report
// all problems at once; text format reports all unknown fields and the first other problem.
Parsed Parse(v1::SpecificationText::Format format, absl::string_view text);

// Parses YAML that is part of this program. Aborts if it is invalid; a test reads every protocol.
v1::ExperimentSpecification MustParse(absl::string_view yaml);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_PARSE_H_
