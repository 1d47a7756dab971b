// Resolve with substituted catalogues, for tests.
#ifndef LENGTHWISE_SPECIFICATION_RESOLVE_WITH_H_
#define LENGTHWISE_SPECIFICATION_RESOLVE_WITH_H_

#include "absl/status/statusor.h"
#include "specification/catalogues.h"
#include "specification/parse.h"
#include "specification/resolve.h"

namespace lengthwise::specification {

// Like Resolve. `parsed` may already contain problems.
absl::StatusOr<Grid> ResolveWith(const Catalogues& catalogues, Parsed parsed, const Limits& limits);

}  // namespace lengthwise::specification

#endif  // LENGTHWISE_SPECIFICATION_RESOLVE_WITH_H_
