// Stored tokens and their file format: a first line "lengthwise-tokens 1", then one line per token
// with fields separated by spaces:
//
//   {token_id} {principal} {role} {create} {expire} {salt} {hash} [{maker}]
//
// An entry without a role, "denied", is no token: the principal's tokens of an identity provider
// are refused. Times are seconds since 1970. The maker is absent if it is unknown. The salt is 32
// hexadecimal digits. The hash is SHA-256("{salt}{secret}") as 64 hexadecimal digits. One round is
// enough: secrets are 256 random bits, so there is no dictionary to try.
#ifndef LENGTHWISE_SERVER_SECURITY_TOKEN_RECORDS_H_
#define LENGTHWISE_SERVER_SECURITY_TOKEN_RECORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/access_service.pb.h"

namespace lengthwise::server {

// Names of the access control files in a data directory and in a backup.
inline constexpr absl::string_view kTokensFile = "tokens";
// Created before the first token. Its name does not match `rm tokens*`. If it exists without
// `tokens`, the tokens are lost and the server does not start.
inline constexpr absl::string_view kRequiresTokensFile = "requires_tokens";

inline constexpr size_t kSaltDigits = 32;

struct TokenRecord {
  std::string token_id;
  std::string principal;
  v1::Role role = v1::ROLE_UNSPECIFIED;  // denies
  int64_t create_seconds = 0;
  int64_t expire_seconds = 0;
  std::string salt;
  std::string hash;
  // The principal that created it. Empty for one made on the server's machine.
  std::string maker;

  bool operator==(const TokenRecord&) const = default;
};

std::string FormatTokenRecords(const std::vector<TokenRecord>& records);

// DATA_LOSS for anything that FormatTokenRecords does not write. The error has the line number and
// the problem, without salt and hash.
absl::StatusOr<std::vector<TokenRecord>> ParseTokenRecords(absl::string_view text);

// [a-z0-9][a-z0-9._@-]*, at most 60 characters.
bool IsPrincipal(absl::string_view text);

// The role of this RoleName. ROLE_UNSPECIFIED for other texts.
v1::Role ParseRole(absl::string_view text);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_TOKEN_RECORDS_H_
