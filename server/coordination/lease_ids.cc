#include "server/coordination/lease_ids.h"

#include <openssl/crypto.h>

#include "absl/strings/str_cat.h"
#include "platform/sha256.h"

namespace lengthwise::server {
namespace {

// 128 bits.
constexpr size_t kProofDigits = 32;

}  // namespace

std::string LeaseIds::Make(Token token, absl::string_view principal) const {
  if (token < key_.first_token) return absl::StrCat("lease-", token);
  const std::string proof =
      platform::HmacSha256Hex(key_.key, absl::StrCat("lease ", token, " of ", principal));
  return absl::StrCat("lease-", token, "-", absl::string_view(proof).substr(0, kProofDigits));
}

bool LeaseIds::Fits(absl::string_view id, Token token, absl::string_view principal) const {
  if (token < 1) return false;
  const std::string made = Make(token, principal);
  // Compare in constant time, so that timing does not reveal a matching prefix.
  return id.size() == made.size() && CRYPTO_memcmp(id.data(), made.data(), made.size()) == 0;
}

absl::Status LeaseIds::Check(absl::string_view id, Token token, absl::string_view principal) const {
  if (Fits(id, token, principal)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("lease ", token, " is not the caller's, or not by this id"));
}

}  // namespace lengthwise::server
