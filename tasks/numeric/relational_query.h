// A question about some of the named numbers in a list: text and numbers in one input.
#ifndef LENGTHWISE_TASKS_NUMERIC_RELATIONAL_QUERY_H_
#define LENGTHWISE_TASKS_NUMERIC_RELATIONAL_QUERY_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "tasks/entry.h"

namespace lengthwise::tasks::numeric {

// Of kind TaskKind::kRegression; its samples have tokens.
const TaskEntry& RelationalQuery();

// A sample's rows as people write them: "Cat2 3.45 Cat5 1.23 ... Find min of categories Cat5 and
// Cat20". A category's name after "Cat" is one token, here its number; the scratchpad is left out.
std::string RelationalText(absl::Span<const double> inputs, absl::Span<const int32_t> tokens);

}  // namespace lengthwise::tasks::numeric

#endif  // LENGTHWISE_TASKS_NUMERIC_RELATIONAL_QUERY_H_
