#include "server/access/token_store.h"

#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "access/token_text.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/random.h"
#include "platform/sha256.h"
#include "server/services/status.h"

namespace lengthwise::server {
namespace {

constexpr size_t kMaxTokens = 10'000;
// Expired tokens stay in the list for so long.
constexpr absl::Duration kForget = absl::Hours(30 * 24);

std::string Hash(absl::string_view salt, absl::string_view secret) {
  return platform::Sha256Hex(absl::StrCat(salt, secret));
}

v1::Token ToToken(const TokenRecord& record) {
  v1::Token token;
  token.set_token_id(record.token_id);
  token.set_principal(record.principal);
  token.set_role(record.role);
  token.mutable_create_time()->set_seconds(record.create_seconds);
  token.mutable_expire_time()->set_seconds(record.expire_seconds);
  return token;
}

absl::Status NotKnown(absl::string_view token_id) {
  return absl::UnauthenticatedError(absl::StrCat(
      "the server does not know the token ", token_id,
      ", or it was revoked; ask an administrator for another (`lengthwise auth create-token`)"));
}

// UNAUTHENTICATED for a token that has expired.
absl::Status CheckTime(const TokenRecord& record, absl::Time now) {
  const absl::Time expire_time = absl::FromUnixSeconds(record.expire_seconds);
  if (now < expire_time) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("the token ", record.token_id, " of ", record.principal, " expired at ",
                   absl::FormatTime(absl::RFC3339_sec, expire_time, absl::UTCTimeZone()),
                   "; ask an administrator for another (`lengthwise auth create-token`)"));
}

absl::Status CheckRequest(const v1::CreateTokenRequest& request) {
  if (!IsPrincipal(request.principal())) {
    return InvalidField("principal",
                        "is malformed; accepted: 1 to 60 characters of a-z, 0-9, \".\", \"_\", "
                        "\"@\" and \"-\", first a letter or digit");
  }
  if (!v1::Role_IsValid(request.role()) || request.role() == v1::ROLE_UNSPECIFIED) {
    return InvalidField("role", "is absent; accepted: VIEWER, SUBMITTER, WORKER, ADMIN");
  }
  if (!request.has_lifetime()) return absl::OkStatus();
  const int64_t seconds = request.lifetime().seconds();
  if (seconds < absl::ToInt64Seconds(TokenStore::kMinLifetime) ||
      seconds > absl::ToInt64Seconds(TokenStore::kMaxLifetime)) {
    return InvalidField("lifetime",
                        absl::StrCat("is ", seconds, " s; accepted: a minute to ten years"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenStore>> TokenStore::Open(const std::string& data_dir, Now now) {
  std::unique_ptr<TokenStore> store(
      new TokenStore(absl::StrCat(data_dir, "/tokens"), std::move(now)));
  platform::MutexLock lock(store->mutex_);
  if (absl::Status status = store->Refresh(); !status.ok()) return status;
  return store;
}

TokenStore::Version TokenStore::CurrentVersion() const {
  struct stat status;
  if (stat(path_.c_str(), &status) != 0) return {.exists = errno != ENOENT};
  return {true, status.st_ino, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
          status.st_size};
}

absl::Status TokenStore::Refresh() {
  const Version version = CurrentVersion();
  if (version == version_) return damage_;
  version_ = version;
  records_.clear();
  damage_ = absl::OkStatus();
  if (!version.exists) {
    platform::LogWarning(absl::StrCat(path_,
                                      " is gone: nobody gets in until the server is started "
                                      "anew, which then has no tokens"));
    return absl::OkStatus();
  }
  required_ = true;
  const absl::StatusOr<std::string> text = platform::ReadFile(path_);
  absl::StatusOr<std::vector<TokenRecord>> records =
      text.ok() ? ParseTokenRecords(*text) : text.status();
  if (records.ok()) {
    records_ = *std::move(records);
    return absl::OkStatus();
  }
  damage_ = absl::Status(
      records.status().code(),
      text.ok() ? absl::StrCat(path_, " is damaged (", records.status().message(),
                               "); restore it from a backup, or delete it and make tokens anew")
                : std::string(records.status().message()));
  platform::LogError(damage_.message());
  return damage_;
}

const TokenRecord* TokenStore::Find(absl::string_view token_id) const {
  const auto found = std::find_if(records_.begin(), records_.end(), [&](const TokenRecord& record) {
    return record.token_id == token_id;
  });
  return found == records_.end() ? nullptr : &*found;
}

bool TokenStore::IsRequired() {
  platform::MutexLock lock(mutex_);
  Refresh().IgnoreError();
  return required_;
}

absl::StatusOr<Caller> TokenStore::Authenticate(absl::string_view text) {
  const absl::StatusOr<access::TokenText> token = access::ParseTokenText(text);
  if (!token.ok()) return absl::UnauthenticatedError(token.status().message());
  TokenRecord known;
  {
    platform::MutexLock lock(mutex_);
    if (!Refresh().ok()) {
      return absl::UnauthenticatedError(
          "the server cannot read its tokens; its administrator finds the reason in its log");
    }
    if (const TokenRecord* found = Find(token->token_id); found != nullptr) known = *found;
  }
  // A secret is hashed and compared whether the id is known or not, in the same time.
  const std::string hash = Hash(known.salt, token->secret);
  const std::string& expected = known.hash.empty() ? std::string(hash.size(), '.') : known.hash;
  if (CRYPTO_memcmp(hash.data(), expected.data(), hash.size()) != 0) {
    return NotKnown(token->token_id);
  }
  if (absl::Status status = CheckTime(known, now_()); !status.ok()) return status;
  return Caller{known.principal, known.role, known.token_id,
                absl::FromUnixSeconds(known.expire_seconds)};
}

absl::Status TokenStore::Recheck(const std::string& token_id) {
  platform::MutexLock lock(mutex_);
  if (!Refresh().ok()) return absl::OkStatus();
  const TokenRecord* record = Find(token_id);
  return record == nullptr ? NotKnown(token_id) : CheckTime(*record, now_());
}

absl::Status TokenStore::Change(
    const std::function<absl::Status(std::vector<TokenRecord>&)>& change) {
  const auto file_lock = platform::FileLock::Acquire(absl::StrCat(path_, ".lock"));
  if (!file_lock.ok()) {
    return absl::UnavailableError(absl::StrCat(
        "the tokens cannot be changed now: ", file_lock.status().message(), "; try again"));
  }
  if (absl::Status status = Refresh(); !status.ok()) return status;
  std::vector<TokenRecord> records = records_;
  if (absl::Status status = change(records); !status.ok()) return status;
  // Its temporary file has mode 0600 from the start, and so has the file.
  absl::Status status = platform::WriteFileAtomically(path_, FormatTokenRecords(records));
  return status.ok() ? Refresh() : status;
}

absl::StatusOr<v1::CreateTokenResponse> TokenStore::Create(const v1::CreateTokenRequest& request) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return status;
  const absl::Duration lifetime =
      request.has_lifetime() ? absl::Seconds(request.lifetime().seconds()) : kDefaultLifetime;
  const absl::StatusOr<std::string> digits =
      platform::RandomHex(access::kTokenIdDigits + access::kTokenSecretDigits + kSaltDigits);
  if (!digits.ok()) return digits.status();
  const std::string id = digits->substr(0, access::kTokenIdDigits);
  const std::string secret = digits->substr(access::kTokenIdDigits, access::kTokenSecretDigits);
  const std::string salt = digits->substr(access::kTokenIdDigits + access::kTokenSecretDigits);
  const absl::Time now = now_();
  TokenRecord record;
  record.token_id = id;
  record.principal = request.principal();
  record.role = request.role();
  record.create_seconds = absl::ToUnixSeconds(now);
  record.expire_seconds = absl::ToUnixSeconds(now + lifetime);
  record.salt = salt;
  record.hash = Hash(salt, secret);
  platform::MutexLock lock(mutex_);
  const absl::Status status = Change([&](std::vector<TokenRecord>& records) -> absl::Status {
    std::erase_if(records, [&](const TokenRecord& old) {
      return absl::FromUnixSeconds(old.expire_seconds) + kForget < now;
    });
    if (records.size() >= kMaxTokens) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are ", records.size(), " tokens; revoke some"));
    }
    records.push_back(record);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  v1::CreateTokenResponse response;
  *response.mutable_token() = ToToken(record);
  response.set_text(access::FormatTokenText({id, secret}));
  return response;
}

absl::StatusOr<v1::ListTokensResponse> TokenStore::List() {
  platform::MutexLock lock(mutex_);
  if (absl::Status status = Refresh(); !status.ok()) return status;
  v1::ListTokensResponse response;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    *response.add_tokens() = ToToken(*record);
  }
  return response;
}

absl::Status TokenStore::Revoke(absl::string_view token_id) {
  platform::MutexLock lock(mutex_);
  return Change([&](std::vector<TokenRecord>& records) -> absl::Status {
    const size_t erased = std::erase_if(
        records, [&](const TokenRecord& record) { return record.token_id == token_id; });
    if (erased > 0) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat("there is no such token; `lengthwise auth list-tokens` lists them"));
  });
}

}  // namespace lengthwise::server
