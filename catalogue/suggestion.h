// "Did you mean": the accepted name that is nearest to what a user wrote.
#ifndef LENGTHWISE_CATALOGUE_SUGGESTION_H_
#define LENGTHWISE_CATALOGUE_SUGGESTION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lengthwise::catalogue {

// Returns `; did you mean "rope"?` for the accepted name nearest to `given`: one that `given` is,
// one that starts with it, one of which a part does ("cosine" for "warmup_cosine"), or one with at
// most a third of its letters wrong; or whose synonym in papers is that near ("rotary" for "rope").
// Where none is near, returns `; accepted: alibi, none, rope` (at most 20 names, then "..."); empty
// when `accepted` is.
std::string Suggestion(absl::string_view given, absl::Span<const std::string> accepted);

// The Damerau-Levenshtein distance (adjacent transpositions count once) without regard to case, '_'
// and '-'.
int NameDistance(absl::string_view a, absl::string_view b);

}  // namespace lengthwise::catalogue

#endif  // LENGTHWISE_CATALOGUE_SUGGESTION_H_
