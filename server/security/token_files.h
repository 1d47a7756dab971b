// Names of the files in a data directory, and in a backup of it, that say who may call.
#ifndef LENGTHWISE_SERVER_SECURITY_TOKEN_FILES_H_
#define LENGTHWISE_SERVER_SECURITY_TOKEN_FILES_H_

#include "absl/strings/string_view.h"

namespace lengthwise::server {

// The tokens (token_records.h).
inline constexpr absl::string_view kTokensFile = "tokens";
// Made before the first token, and not a name that `rm tokens*` takes with it: where it is, a
// server without `tokens` has lost them and does not start.
inline constexpr absl::string_view kRequiresTokensFile = "requires_tokens";

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_TOKEN_FILES_H_
