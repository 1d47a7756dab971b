// TokenStore: a server's tokens, in the file "tokens" of its data directory. The file has mode
// 0600, is replaced as a whole at every change, and is read again when another process has replaced
// it: `lengthwise_server --create_admin_token` takes effect on a running server.
//
// Anyone who can write that file is an administrator. It is used only if no user other than the
// server's and root can change or replace it (platform/private_files.h). A second file,
// "requires_tokens", records that the server once had tokens. Without it, a server whose tokens are
// lost would be open to everyone.
#ifndef LENGTHWISE_SERVER_SECURITY_TOKEN_STORE_H_
#define LENGTHWISE_SERVER_SECURITY_TOKEN_STORE_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "proto/access_service.pb.h"
#include "server/security/authorization.h"
#include "server/security/token_records.h"
#include "server/security/web_tokens.h"

namespace lengthwise::server {

// Thread-safe. Errors of the file system are those of platform/files.h. FAILED_PRECONDITION if
// another user could change the tokens; the message has the command that fixes it.
class TokenStore {
 public:
  using Now = std::function<absl::Time()>;

  static constexpr absl::Duration kDefaultLifetime = absl::Hours(90 * 24);
  static constexpr absl::Duration kMinLifetime = absl::Minutes(1);
  static constexpr absl::Duration kMaxLifetime = absl::Hours(24 * 3653);

  // Behaviour of Open if the server had tokens and their file is missing.
  enum class IfMissing {
    // Fails with FAILED_PRECONDITION.
    kRefuse,
    // Returns a store without tokens, in order to create one. It refuses every caller until then.
    kAccept,
  };

  // Opens the tokens in `data_dir`, which must exist. DATA_LOSS names the damaged file.
  static absl::StatusOr<std::unique_ptr<TokenStore>> Open(
      const std::string& data_dir, Now now = absl::Now, IfMissing if_missing = IfMissing::kRefuse);

  // Deletes all tokens. A server that is started afterwards is open to everyone who can reach it; a
  // running one refuses every caller until it is restarted. OK if there are no tokens.
  static absl::Status RemoveAll(const std::string& data_dir);

  // Accepts the tokens of an identity provider, too. Call it before the first caller comes.
  void Accept(std::unique_ptr<WebTokens> web) { web_ = std::move(web); }

  // True if callers must present a token: with an identity provider, or from the first token on,
  // even if all were revoked or the file is gone, until RemoveAll and a restart.
  bool IsRequired();

  // The caller that a token stands for. UNAUTHENTICATED says why the token is refused and what to
  // do. Only a caller who has the secret learns that the token expired. `refused`, unless null,
  // gets the caller of a token that expired, or was revoked since this store was opened.
  absl::StatusOr<Caller> Authenticate(absl::string_view text, Caller* refused = nullptr);

  // UNAUTHENTICATED if the caller's token, which was valid, was revoked or has expired since. OK
  // while the tokens cannot be read: with a damaged file new callers are refused, but open streams
  // stay.
  absl::Status Recheck(const Caller& caller);

  // INVALID_ARGUMENT names the field. `maker` is the calling principal.
  absl::StatusOr<v1::CreateTokenResponse> Create(const v1::CreateTokenRequest& request,
                                                 const std::string& maker = "");
  // Newest first.
  absl::StatusOr<v1::ListTokensResponse> List();
  // With an identity provider, all tokens of a principal include the provider's, later ones too: an
  // entry without a role denies them until it is revoked by its id. NOT_FOUND if there is no such
  // token, INVALID_ARGUMENT if the request names not one thing.
  absl::StatusOr<v1::RevokeTokenResponse> Revoke(const v1::RevokeTokenRequest& request);

 private:
  // Identifies a file and its content.
  struct Version {
    bool exists = false;
    ino_t inode = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;  // also changes with mode and owner
    int64_t size = 0;
    bool operator==(const Version&) const = default;
  };

  TokenStore(const std::string& data_dir, Now now);

  Version CurrentVersion() const;
  // Reads the file if it has changed since the last time, or could not be used then.
  absl::Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<TokenRecord>> Read() const;
  // Creates "requires_tokens", durably.
  absl::Status Mark() const;
  // UNAUTHENTICATED if a caller with a provider's token is denied, or its token has expired.
  absl::Status CheckWeb(const Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds those of `before` that are not in `records_` to `revoked_`.
  void KeepRevoked(std::vector<TokenRecord> before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads the tokens, applies `change`, and writes them. Excludes other processes and threads.
  absl::Status Change(const std::function<absl::Status(std::vector<TokenRecord>&)>& change)
      ABSL_LOCKS_EXCLUDED(change_mutex_, mutex_);

  const std::string data_dir_;
  const std::string path_;
  const std::string mark_path_;
  const Now now_;
  std::unique_ptr<WebTokens> web_;  // null: only the server's own
  // Held while a change is written. Every call of the API is authenticated under mutex_, which must
  // not wait for the disk.
  platform::Mutex change_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  platform::Mutex mutex_;
  Version version_ ABSL_GUARDED_BY(mutex_);
  bool required_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;  // Open has succeeded
  std::vector<TokenRecord> records_ ABSL_GUARDED_BY(mutex_);
  // The newest of the revoked tokens, for the audit log.
  std::deque<TokenRecord> revoked_ ABSL_GUARDED_BY(mutex_);
  // Why the newest file cannot be used. Callers are refused until it can be.
  absl::Status damage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_TOKEN_STORE_H_
