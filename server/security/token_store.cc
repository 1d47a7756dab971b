#include "server/security/token_store.h"

#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/private_files.h"
#include "platform/random.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "rpc/status.h"
#include "rpc/token.h"

namespace lengthwise::server {
namespace {

constexpr size_t kMaxTokens = 10'000;
constexpr size_t kMaxRevoked = 1'000;
// Expired tokens stay in the list for this long.
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
  token.set_maker(record.maker);
  return token;
}

// Null if there is none.
template <typename Records>
const TokenRecord* Find(const Records& records, absl::string_view token_id) {
  const auto found = std::find_if(records.begin(), records.end(), [&](const TokenRecord& record) {
    return record.token_id == token_id;
  });
  return found == records.end() ? nullptr : &*found;
}

absl::Status Unreadable() {
  return absl::UnauthenticatedError(
      "the server cannot read its tokens; its administrator finds the reason in its log");
}

absl::Status NotKnown(absl::string_view token_id) {
  return absl::UnauthenticatedError(absl::StrCat(
      "the server does not know the token ", token_id,
      ", or it was revoked; ask an administrator for another (`lengthwise auth create-token`)"));
}

// UNAUTHENTICATED if the token has expired.
absl::Status CheckTime(const Caller& caller, absl::Time now) {
  if (now < caller.expire_time) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("the token ", caller.token_id, " of ", caller.principal, " expired at ",
                   absl::FormatTime(absl::RFC3339_sec, caller.expire_time, absl::UTCTimeZone()),
                   WebTokens::IsOf(caller)
                       ? "; get a new one from the identity provider"
                       : "; ask an administrator for another (`lengthwise auth create-token`)"));
}

struct NewToken {
  TokenRecord record;
  std::string secret;
};

absl::StatusOr<NewToken> MakeToken(const std::string& principal, v1::Role role, absl::Time now,
                                   absl::Duration lifetime) {
  ASSIGN_OR_RETURN(
      const std::string digits,
      platform::RandomHex(rpc::kTokenIdDigits + rpc::kTokenSecretDigits + kSaltDigits));
  NewToken made;
  made.secret = digits.substr(rpc::kTokenIdDigits, rpc::kTokenSecretDigits);
  made.record.token_id = digits.substr(0, rpc::kTokenIdDigits);
  made.record.principal = principal;
  made.record.role = role;
  made.record.create_seconds = absl::ToUnixSeconds(now);
  made.record.expire_seconds = absl::ToUnixSeconds(now + lifetime);
  made.record.salt = digits.substr(rpc::kTokenIdDigits + rpc::kTokenSecretDigits);
  made.record.hash = Hash(made.record.salt, made.secret);
  return made;
}

std::string LockPath(const std::string& data_dir) {
  return absl::StrCat(data_dir, "/", kTokensFile, ".lock");
}

bool Exists(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 || errno != ENOENT;
}

// Excludes other processes while the tokens change, and deletes what those that were killed left.
absl::StatusOr<std::unique_ptr<platform::FileLock>> LockFile(const std::string& data_dir) {
  ASSIGN_OR_RETURN(auto lock, platform::FileLock::Acquire(LockPath(data_dir)),
                   absl::UnavailableError(absl::StrCat(
                       "the tokens cannot be changed now: ", _.message(), "; try again")));
  for (const absl::string_view file : {kTokensFile, kRequiresTokensFile}) {
    RETURN_IF_ERROR(platform::DeleteTemporaryFilesOf(absl::StrCat(data_dir, "/", file)));
  }
  return lock;
}

absl::Status CheckRequest(const v1::CreateTokenRequest& request) {
  if (!IsPrincipal(request.principal())) {
    return rpc::InvalidField(
        "principal",
        "is malformed; accepted: 1 to 60 characters of a-z, 0-9, \".\", \"_\", "
        "\"@\" and \"-\", first a letter or digit");
  }
  if (!v1::Role_IsValid(request.role()) || request.role() == v1::ROLE_UNSPECIFIED) {
    return rpc::InvalidField("role",
                             "is absent; accepted: VIEWER, SUBMITTER, WORKER, ADMIN, BACKUP");
  }
  if (!request.has_lifetime()) return absl::OkStatus();
  const int64_t seconds = request.lifetime().seconds();
  if (seconds < absl::ToInt64Seconds(TokenStore::kMinLifetime) ||
      seconds > absl::ToInt64Seconds(TokenStore::kMaxLifetime)) {
    return rpc::InvalidField("lifetime",
                             absl::StrCat("is ", seconds, " s; accepted: a minute to ten years"));
  }
  return absl::OkStatus();
}

}  // namespace

TokenStore::TokenStore(const std::string& data_dir, Now now)
    : data_dir_(data_dir),
      path_(absl::StrCat(data_dir, "/", kTokensFile)),
      mark_path_(absl::StrCat(data_dir, "/", kRequiresTokensFile)),
      now_(std::move(now)) {}

absl::StatusOr<std::unique_ptr<TokenStore>> TokenStore::Open(const std::string& data_dir, Now now,
                                                             IfMissing if_missing) {
  std::unique_ptr<TokenStore> store(new TokenStore(data_dir, std::move(now)));
  platform::MutexLock lock(store->mutex_);
  RETURN_IF_ERROR(store->Refresh());
  // For what a killed change left; only a change creates the lock's file.
  if (Exists(LockPath(data_dir))) LockFile(data_dir).status().IgnoreError();
  store->is_open_ = true;
  const bool marked = Exists(store->mark_path_);
  if (store->version_.exists) {
    // A directory of a release that did not create the mark.
    if (absl::Status status = marked ? absl::OkStatus() : store->Mark(); !status.ok()) {
      platform::LogWarning(status.message());
    }
    return store;
  }
  if (!marked) return store;
  if (if_missing == IfMissing::kRefuse) {
    return absl::FailedPreconditionError(absl::StrCat(
        store->path_,
        " is missing, but the server had tokens: without them it would be open to "
        "everyone; restore the file from a backup, create a new token with `lengthwise_server "
        "--data_dir ",
        data_dir,
        " --create_admin_token PATH`, or open the server to everyone with "
        "`lengthwise_server --data_dir ",
        data_dir, " --remove_all_tokens`"));
  }
  store->required_ = true;
  return store;
}

absl::Status TokenStore::RemoveAll(const std::string& data_dir) {
  TokenStore store(data_dir, absl::Now);
  RETURN_IF_ERROR(platform::CheckPrivateDirectory(data_dir));
  ASSIGN_OR_RETURN(const auto file_lock, LockFile(data_dir));
  // If only the first deletion succeeds, the next Open creates the mark again.
  absl::Status status = platform::DeleteFile(store.mark_path_);
  if (status.ok()) status = platform::DeleteFile(store.path_);
  return status.ok() ? platform::SyncDirectory(data_dir) : status;
}

absl::Status TokenStore::Mark() const {
  return platform::WriteFileAtomically(
      mark_path_,
      "This server asks its callers for tokens. `lengthwise_server --remove_all_tokens` deletes "
      "this file and the tokens.\n");
}

TokenStore::Version TokenStore::CurrentVersion() const {
  struct stat status;
  // A file that cannot be examined counts as existing: it must refuse callers, not open the server.
  if (lstat(path_.c_str(), &status) != 0) return {.exists = errno != ENOENT};
  return {true, status.st_ino, absl::ToUnixNanos(absl::TimeFromTimespec(status.st_mtim)),
          absl::ToUnixNanos(absl::TimeFromTimespec(status.st_ctim)), status.st_size};
}

absl::Status TokenStore::Refresh() {
  const Version version = CurrentVersion();
  if (version == version_ && damage_.ok()) return damage_;
  version_ = version;
  // No token is valid unless the newest file can be read.
  std::vector<TokenRecord> before = std::exchange(records_, {});
  const absl::Status earlier = std::exchange(damage_, absl::OkStatus());
  if (!version.exists) {
    platform::LogWarning(
        path_,
        " is gone: every caller is refused until it is restored, or a new token is "
        "created (--create_admin_token)");
    return absl::OkStatus();
  }
  required_ = true;
  absl::StatusOr<std::vector<TokenRecord>> records = Read();
  if (records.ok()) {
    records_ = *std::move(records);
    KeepRevoked(std::move(before));
    return absl::OkStatus();
  }
  damage_ = records.status();
  // Open returns the error instead.
  if (is_open_ && damage_ != earlier) platform::LogError(damage_.message());
  return damage_;
}

absl::StatusOr<std::vector<TokenRecord>> TokenStore::Read() const {
  ASSIGN_OR_RETURN(const std::string text,
                   platform::ReadPrivateFile(data_dir_, std::string(kTokensFile)));
  absl::StatusOr<std::vector<TokenRecord>> records = ParseTokenRecords(text);
  if (records.ok()) return records;
  return absl::Status(records.status().code(),
                      absl::StrCat(path_, " is damaged (", records.status().message(),
                                   "); restore it from a backup, or delete it and create a new "
                                   "token with `lengthwise_server "
                                   "--data_dir ",
                                   data_dir_, " --create_admin_token PATH`"));
}

void TokenStore::KeepRevoked(std::vector<TokenRecord> before) {
  absl::flat_hash_set<absl::string_view> ids;
  for (const TokenRecord& record : records_) ids.insert(record.token_id);
  for (TokenRecord& record : before) {
    if (!ids.contains(record.token_id)) revoked_.push_back(std::move(record));
  }
  while (revoked_.size() > kMaxRevoked) revoked_.pop_front();
}

bool TokenStore::IsRequired() {
  platform::MutexLock lock(mutex_);
  // An error leaves required_ as it is, so a file that becomes unreadable does not open the server.
  Refresh().IgnoreError();
  return required_ || web_ != nullptr;
}

absl::StatusOr<Caller> TokenStore::Authenticate(absl::string_view text, Caller* refused) {
  if (web_ != nullptr && rpc::IsWebToken(text)) {
    ASSIGN_OR_RETURN(Caller caller, web_->Authenticate(text, refused));
    platform::MutexLock lock(mutex_);
    // Without the file, who is denied is not known.
    const bool is_readable = Refresh().ok() && (version_.exists || !required_);
    absl::Status status = is_readable ? CheckWeb(caller) : Unreadable();
    if (status.ok()) return caller;
    if (refused != nullptr) *refused = std::move(caller);
    return status;
  }
  const absl::StatusOr<rpc::TokenText> token = rpc::ParseTokenText(text);
  if (!token.ok()) return absl::UnauthenticatedError(token.status().message());
  TokenRecord known;
  bool is_revoked = false;
  {
    platform::MutexLock lock(mutex_);
    if (!Refresh().ok()) return Unreadable();
    const TokenRecord* found = Find(records_, token->token_id);
    is_revoked = found == nullptr;
    if (is_revoked) found = Find(revoked_, token->token_id);
    if (found != nullptr) known = *found;
  }
  // Hash and compare even if the id is unknown, so that timing does not reveal known ids.
  const std::string hash = Hash(known.salt, token->secret);
  const std::string& expected = known.hash.empty() ? std::string(hash.size(), '.') : known.hash;
  if (CRYPTO_memcmp(hash.data(), expected.data(), hash.size()) != 0) {
    return NotKnown(token->token_id);
  }
  Caller caller = {known.principal, known.role, known.token_id,
                   absl::FromUnixSeconds(known.expire_seconds), known.maker};
  absl::Status status = is_revoked ? NotKnown(token->token_id) : CheckTime(caller, now_());
  if (status.ok()) return caller;
  if (refused != nullptr) *refused = std::move(caller);
  return status;
}

absl::Status TokenStore::Recheck(const Caller& caller) {
  platform::MutexLock lock(mutex_);
  if (!Refresh().ok()) return absl::OkStatus();
  if (WebTokens::IsOf(caller)) return CheckWeb(caller);
  const bool is_known = Find(records_, caller.token_id) != nullptr;
  return is_known ? CheckTime(caller, now_()) : NotKnown(caller.token_id);
}

absl::Status TokenStore::CheckWeb(const Caller& caller) {
  const auto denies = [&](const TokenRecord& record) {
    return record.role == v1::ROLE_UNSPECIFIED && record.principal == caller.principal;
  };
  if (std::none_of(records_.begin(), records_.end(), denies)) return CheckTime(caller, now_());
  return absl::UnauthenticatedError(absl::StrCat(
      "an administrator has revoked all tokens of ", caller.principal,
      "; ask one to revoke the entry with the role \"denied\" (`lengthwise auth list-tokens`)"));
}

absl::Status TokenStore::Change(
    const std::function<absl::Status(std::vector<TokenRecord>&)>& change) {
  platform::MutexLock change_lock(change_mutex_);
  RETURN_IF_ERROR(platform::CheckPrivateDirectory(data_dir_));
  ASSIGN_OR_RETURN(const auto file_lock, LockFile(data_dir_));
  std::vector<TokenRecord> records;
  {
    platform::MutexLock lock(mutex_);
    RETURN_IF_ERROR(Refresh());
    records = records_;
  }
  RETURN_IF_ERROR(change(records));
  // Durable before the first token: a server that loses its tokens must know that it had some.
  if (!Exists(mark_path_)) {
    RETURN_IF_ERROR(Mark());
  }
  // The temporary file has mode 0600 from the start, and so has the final one.
  RETURN_IF_ERROR(platform::WriteFileAtomically(path_, FormatTokenRecords(records)));
  platform::MutexLock lock(mutex_);
  return Refresh();
}

absl::StatusOr<v1::CreateTokenResponse> TokenStore::Create(const v1::CreateTokenRequest& request,
                                                           const std::string& maker) {
  RETURN_IF_ERROR(CheckRequest(request));
  const absl::Duration lifetime =
      request.has_lifetime() ? absl::Seconds(request.lifetime().seconds()) : kDefaultLifetime;
  const absl::Time now = now_();
  ASSIGN_OR_RETURN(NewToken made, MakeToken(request.principal(), request.role(), now, lifetime));
  made.record.maker = maker;
  RETURN_IF_ERROR(Change([&](std::vector<TokenRecord>& records) -> absl::Status {
    std::erase_if(records, [&](const TokenRecord& old) {
      return absl::FromUnixSeconds(old.expire_seconds) + kForget < now;
    });
    if (records.size() >= kMaxTokens) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are ", records.size(), " tokens; revoke some"));
    }
    records.push_back(made.record);
    return absl::OkStatus();
  }));
  v1::CreateTokenResponse response;
  *response.mutable_token() = ToToken(made.record);
  response.set_text(rpc::FormatTokenText({made.record.token_id, made.secret}));
  return response;
}

absl::StatusOr<v1::ListTokensResponse> TokenStore::List() {
  platform::MutexLock lock(mutex_);
  RETURN_IF_ERROR(Refresh());
  v1::ListTokensResponse response;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    *response.add_tokens() = ToToken(*record);
  }
  return response;
}

absl::StatusOr<v1::RevokeTokenResponse> TokenStore::Revoke(const v1::RevokeTokenRequest& request) {
  if (request.token_id().empty() == request.principal().empty()) {
    return absl::InvalidArgumentError("name a token or a principal, not both");
  }
  ASSIGN_OR_RETURN(const NewToken denial,
                   MakeToken(request.principal(), v1::ROLE_UNSPECIFIED, now_(), kMaxLifetime));
  v1::RevokeTokenResponse response;
  RETURN_IF_ERROR(Change([&](std::vector<TokenRecord>& records) -> absl::Status {
    const size_t erased = std::erase_if(records, [&](const TokenRecord& record) {
      if (record.token_id != request.token_id() && record.principal != request.principal()) {
        return false;
      }
      response.set_principal(record.principal);
      if (record.role != v1::ROLE_UNSPECIFIED) response.set_count(response.count() + 1);
      return true;
    });
    if (web_ != nullptr && IsPrincipal(request.principal())) {
      records.push_back(denial.record);
      response.set_principal(request.principal());
      return absl::OkStatus();
    }
    if (erased > 0) return absl::OkStatus();
    return absl::NotFoundError("there is no such token; `lengthwise auth list-tokens` lists them");
  }));
  return response;
}

}  // namespace lengthwise::server
