// Samples of the relational query task as text. Their inputs mix text and numbers.
#ifndef LENGTHWISE_TASKS_NUMERIC_RELATIONAL_QUERY_H_
#define LENGTHWISE_TASKS_NUMERIC_RELATIONAL_QUERY_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace lengthwise::tasks::numeric {

// Formats a sample's rows: "Cat2 3.45 Cat5 1.23 ... Find min of categories Cat5 and Cat20". The
// category after "Cat" is a single token, shown as its number. Omits the scratchpad.
std::string RelationalText(absl::Span<const double> inputs, absl::Span<const int32_t> tokens);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_RELATIONAL_QUERY_H_
