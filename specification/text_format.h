// Specifications in protocol buffers' text format.
#ifndef LENGTHWISE_SPECIFICATION_TEXT_FORMAT_H_
#define LENGTHWISE_SPECIFICATION_TEXT_FORMAT_H_

#include "absl/strings/string_view.h"
#include "specification/parse.h"

namespace lengthwise::specification {

// Reports all unknown fields, and the first other mistake: protobuf's parser stops there.
Parsed ReadTextFormat(absl::string_view text);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_TEXT_FORMAT_H_
