// Reads a specification from a document by reflection, so that a new proto field needs no code
// here.
#ifndef LENGTHWISE_SPECIFICATION_MESSAGE_READER_H_
#define LENGTHWISE_SPECIFICATION_MESSAGE_READER_H_

#include "specification/document.h"
#include "specification/parse.h"

namespace lengthwise::specification {

// Most values of one list, after its ranges are expanded.
inline constexpr int64_t kMaxListValues = 1'000'000;

// Reads at most kMaxNodes values. A text whose aliases expand to more is rejected, so its cost is
// bounded.
Parsed ReadSpecification(const Document& document);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_MESSAGE_READER_H_
