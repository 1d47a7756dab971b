// Suggests the accepted name that is nearest to a user's misspelling ("did you mean").
#ifndef LENGTHWISE_CATALOGUE_SUGGESTION_H_
#define LENGTHWISE_CATALOGUE_SUGGESTION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lengthwise::catalogue {

// Returns `; did you mean "rope"?` for the accepted name nearest to `given`: an equal name, one
// that starts with it, one with a part that does ("cosine" for "warmup_cosine"), one with at most a
// third of its letters wrong, or one whose synonym in papers is that near ("rotary" for "rope"). If
// none is near, returns `; accepted: alibi, none, rope` (at most 20 names, then "..."). Returns an
// empty string if `accepted` is empty.
std::string Suggestion(absl::string_view given, absl::Span<const std::string> accepted);

// The name that Suggestion says you meant; null if none is near.
const std::string* Nearest(absl::string_view given, absl::Span<const std::string> accepted);

// Returns "table, json or csv".
std::string Alternatives(absl::Span<const std::string> all);

// The Damerau-Levenshtein distance (adjacent transpositions count once) without regard to case, '_'
// and '-'.
int NameDistance(absl::string_view a, absl::string_view b);

}  // namespace lengthwise::catalogue

#endif  // LENGTHWISE_CATALOGUE_SUGGESTION_H_
