// Field paths and "did you mean" suggestions for misspelt fields.
#ifndef LENGTHWISE_SPECIFICATION_FIELD_NAMES_H_
#define LENGTHWISE_SPECIFICATION_FIELD_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace lengthwise::specification {

// Joins a field path: "parent.name", or "name" if `parent` is empty.
std::string Below(absl::string_view parent, absl::string_view name);

struct UnknownField {
  // Text to append to the error: `; did you mean "steps"?`, or the accepted names.
  std::string suggestion;
  // The closest field name; empty if none is close.
  std::string probably;
};
UnknownField DescribeUnknownField(const google::protobuf::Descriptor& message,
                                  absl::string_view name);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_FIELD_NAMES_H_
