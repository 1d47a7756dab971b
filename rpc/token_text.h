// Formats and parses the text of a token: "lw_{token_id}_{secret}", 12 and 64 lower-case
// hexadecimal digits. The id is public and names the token in lists and errors; the secret has 256
// random bits.
#ifndef LENGTHWISE_RPC_TOKEN_TEXT_H_
#define LENGTHWISE_RPC_TOKEN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::rpc {

inline constexpr size_t kTokenIdDigits = 12;
inline constexpr size_t kTokenSecretDigits = 64;
// Metadata that carries a token: "authorization: Bearer lw_...".
inline constexpr char kAuthorizationKey[] = "authorization";
inline constexpr char kBearerPrefix[] = "Bearer ";

struct TokenText {
  std::string token_id;
  std::string secret;

  bool operator==(const TokenText&) const = default;
};

std::string FormatTokenText(const TokenText& token);

// Parses the text of a token. INVALID_ARGUMENT for anything else, including surrounding white
// space. The message never repeats the input, which may be a secret.
absl::StatusOr<TokenText> ParseTokenText(absl::string_view text);

// Returns true if the text has the form of a token's id.
bool IsTokenId(absl::string_view text);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TOKEN_TEXT_H_
