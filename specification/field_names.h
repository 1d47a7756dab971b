// The names of fields, as paths and in messages about misspelt ones.
#ifndef LENGTHWISE_SPECIFICATION_FIELD_NAMES_H_
#define LENGTHWISE_SPECIFICATION_FIELD_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace lengthwise::specification {

// "parent.name", or "name" without a parent.
std::string Below(absl::string_view parent, absl::string_view name);

struct UnknownField {
  // `; did you mean "steps"?`, or the accepted names.
  std::string suggestion;
  // The field that was probably meant; empty where none is near.
  std::string probably;
};
UnknownField DescribeUnknownField(const google::protobuf::Descriptor& message,
                                  absl::string_view name);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_FIELD_NAMES_H_
