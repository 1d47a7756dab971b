// What has to be said beside the numbers of a comparison.
#ifndef LENGTHWISE_CLIENT_COMPARISON_COMPARISON_REMARKS_H_
#define LENGTHWISE_CLIENT_COMPARISON_COMPARISON_REMARKS_H_

#include <string>
#include <vector>

#include "client/comparison/comparison_display.h"

namespace lengthwise::client {

// "table1_quick-1 beside Table 1 of Ruoss et al. 2023 (ACL): accuracy on unseen lengths, per cent."
std::string Heading(const ComparisonDocument& document);

// Sentences: how many cells were run and which not, how many trials a value is taken from, what the
// marks mean (`best_mark` is the one for the best of a row), how the protocol differs, what the
// published table's notes say.
std::vector<std::string> Remarks(const ComparisonDocument& document, absl::string_view best_mark);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_COMPARISON_REMARKS_H_
