#include "server/security/token_records.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "platform/sha256.h"
#include "proto/role_name.h"
#include "rpc/token.h"

namespace lengthwise::server {
namespace {

constexpr absl::string_view kHeader = "lengthwise-tokens 1";
constexpr size_t kMaxPrincipalBytes = 60;

// Describes what is wrong with the fields. Empty if nothing is.
absl::string_view Read(const std::vector<absl::string_view>& fields, TokenRecord& record) {
  if (fields.size() != 7 && fields.size() != 8) return "it does not have seven or eight fields";
  if (!rpc::IsTokenId(fields[0])) return "the token's id is malformed";
  if (!IsPrincipal(fields[1])) return "the principal is malformed";
  record.role = ParseRole(fields[2]);
  if (record.role == v1::ROLE_UNSPECIFIED && fields[2] != RoleName(record.role)) {
    return "there is no such role";
  }
  if (!absl::SimpleAtoi(fields[3], &record.create_seconds) ||
      !absl::SimpleAtoi(fields[4], &record.expire_seconds)) {
    return "a time is malformed";
  }
  if (!platform::IsHex(fields[5], kSaltDigits)) return "the salt is malformed";
  if (!platform::IsSha256Hex(fields[6])) return "the hash is malformed";
  record.token_id = std::string(fields[0]);
  record.principal = std::string(fields[1]);
  record.salt = std::string(fields[5]);
  record.hash = std::string(fields[6]);
  if (fields.size() == 8) record.maker = std::string(fields[7]);
  if (fields.size() == 8 && !IsPrincipal(record.maker)) return "the maker is malformed";
  return "";
}

}  // namespace

std::string FormatTokenRecords(const std::vector<TokenRecord>& records) {
  std::string text = absl::StrCat(kHeader, "\n");
  for (const TokenRecord& record : records) {
    absl::StrAppend(&text, record.token_id, " ", record.principal, " ", RoleName(record.role), " ",
                    record.create_seconds, " ", record.expire_seconds, " ", record.salt, " ",
                    record.hash, record.maker.empty() ? "" : " ", record.maker, "\n");
  }
  return text;
}

absl::StatusOr<std::vector<TokenRecord>> ParseTokenRecords(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kHeader) || !absl::ConsumePrefix(&text, "\n")) {
    return absl::DataLossError(absl::StrCat("line 1 is not \"", kHeader, "\""));
  }
  std::vector<TokenRecord> records;
  std::set<std::string> ids;
  if (text.empty()) return records;
  // Every line ends with a newline, so a truncated file is an error and not a shorter list.
  if (!absl::ConsumeSuffix(&text, "\n")) return absl::DataLossError("the last line has no end");
  int64_t number = 1;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    TokenRecord record;
    absl::string_view mistake = Read(absl::StrSplit(line, ' '), record);
    if (mistake.empty() && !ids.insert(record.token_id).second) mistake = "the id is there twice";
    if (!mistake.empty()) return absl::DataLossError(absl::StrCat("line ", number, ": ", mistake));
    records.push_back(std::move(record));
  }
  return records;
}

bool IsPrincipal(absl::string_view text) {
  const auto is_alphanumeric = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c);
  };
  return !text.empty() && text.size() <= kMaxPrincipalBytes && is_alphanumeric(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_alphanumeric(c) || c == '.' || c == '_' || c == '@' || c == '-';
         });
}

v1::Role ParseRole(absl::string_view text) {
  for (const v1::Role role : kRoles) {
    if (text == RoleName(role)) return role;
  }
  return v1::ROLE_UNSPECIFIED;
}

}  // namespace lengthwise::server
