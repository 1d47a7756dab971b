// The text of a token: "lw_{token_id}_{secret}", 12 and 64 lower-case hexadecimal digits. The id is
// not secret and names the token in lists and errors; the secret is 256 random bits.
#ifndef LENGTHWISE_RPC_TOKEN_TEXT_H_
#define LENGTHWISE_RPC_TOKEN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::rpc {

inline constexpr size_t kTokenIdDigits = 12;
inline constexpr size_t kTokenSecretDigits = 64;
// Where a token travels: the metadata "authorization: Bearer lw_...".
inline constexpr char kAuthorizationKey[] = "authorization";
inline constexpr char kBearerPrefix[] = "Bearer ";

struct TokenText {
  std::string token_id;
  std::string secret;

  bool operator==(const TokenText&) const = default;
};

std::string FormatTokenText(const TokenText& token);

// INVALID_ARGUMENT for anything else, surrounding white space too; the message never repeats what
// was given.
absl::StatusOr<TokenText> ParseTokenText(absl::string_view text);

// Whether it is an id as a token has it.
bool IsTokenId(absl::string_view text);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TOKEN_TEXT_H_
