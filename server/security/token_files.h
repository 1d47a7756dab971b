// Names of the access control files in a data directory and in a backup.
#ifndef LENGTHWISE_SERVER_SECURITY_TOKEN_FILES_H_
#define LENGTHWISE_SERVER_SECURITY_TOKEN_FILES_H_

#include "absl/strings/string_view.h"

namespace lengthwise::server {

// The tokens (token_records.h).
inline constexpr absl::string_view kTokensFile = "tokens";
// Created before the first token. Its name does not match `rm tokens*`. If it exists without
// `tokens`, the tokens are lost and the server does not start.
inline constexpr absl::string_view kRequiresTokensFile = "requires_tokens";

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_TOKEN_FILES_H_
