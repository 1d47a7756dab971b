#include "rpc/token_text.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lengthwise::rpc {
namespace {

constexpr absl::string_view kPrefix = "lw_";

bool IsHex(absl::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string FormatTokenText(const TokenText& token) {
  return absl::StrCat(kPrefix, token.token_id, "_", token.secret);
}

absl::StatusOr<TokenText> ParseTokenText(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kPrefix) &&
      rest.size() == kTokenIdDigits + 1 + kTokenSecretDigits && rest[kTokenIdDigits] == '_') {
    const absl::string_view id = rest.substr(0, kTokenIdDigits);
    const absl::string_view secret = rest.substr(kTokenIdDigits + 1);
    if (IsHex(id, kTokenIdDigits) && IsHex(secret, kTokenSecretDigits)) {
      return TokenText{std::string(id), std::string(secret)};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("this is no token; expected lw_, ", kTokenIdDigits,
                                                 " digits, _ and ", kTokenSecretDigits,
                                                 " digits, all hexadecimal and lower-case"));
}

bool IsTokenId(absl::string_view text) { return IsHex(text, kTokenIdDigits); }

}  // namespace lengthwise::rpc
