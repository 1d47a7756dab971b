// Reads a specification from a document by reflection, so that a new proto field needs no code
// here, and describes fields that do not exist.
#ifndef LENGTHWISE_SPECIFICATION_MESSAGE_READER_H_
#define LENGTHWISE_SPECIFICATION_MESSAGE_READER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "specification/document.h"
#include "specification/parse.h"

namespace lengthwise::specification {

// Most values of one list, after its ranges are expanded.
inline constexpr int64_t kMaxListValues = 1'000'000;

// Reads at most kMaxNodes values. A text whose aliases expand to more is rejected, so its cost is
// bounded.
Parsed ReadSpecification(const Document& document);

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

#endif  // LENGTHWISE_SPECIFICATION_MESSAGE_READER_H_
