// Reads specifications in protocol buffers' text format.
#ifndef LENGTHWISE_SPECIFICATION_TEXT_FORMAT_H_
#define LENGTHWISE_SPECIFICATION_TEXT_FORMAT_H_

#include "absl/strings/string_view.h"
#include "specification/parse.h"

namespace lengthwise::specification {

// Reports all unknown fields but only the first other problem, where protobuf's parser stops.
Parsed ReadTextFormat(absl::string_view text);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_TEXT_FORMAT_H_
