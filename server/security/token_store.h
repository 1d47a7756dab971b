// A server's tokens: the file "tokens" in its data directory, mode 0600, replaced as a whole at
// every change, and read again when another process has replaced it: `lengthwise_server
// --create_admin_token` takes effect on a server that runs.
//
// Whoever can write that file is an administrator. It is used only if nobody but the server's user
// and root can change or replace it (platform/private_files.h). A second file, "requires_tokens",
// says that the server had tokens once: without it, a server whose tokens are lost would be open to
// everyone.
#ifndef LENGTHWISE_SERVER_SECURITY_TOKEN_STORE_H_
#define LENGTHWISE_SERVER_SECURITY_TOKEN_STORE_H_

#include <sys/types.h>

#include <cstdint>
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

namespace lengthwise::server {

// Thread-safe. Errors of the file system are those of platform/files.h. FAILED_PRECONDITION:
// another user could change the tokens; the message has the command that mends it.
class TokenStore {
 public:
  using Now = std::function<absl::Time()>;

  static constexpr absl::Duration kDefaultLifetime = absl::Hours(90 * 24);
  static constexpr absl::Duration kMinLifetime = absl::Minutes(1);
  static constexpr absl::Duration kMaxLifetime = absl::Hours(24 * 3653);

  // What Open does where there were tokens and their file is missing.
  enum class IfMissing {
    // FAILED_PRECONDITION.
    kRefuse,
    // A store without a token, to make one: nobody gets in with it until then.
    kAccept,
  };

  // The tokens in `data_dir`, which must exist. DATA_LOSS names the file where it is damaged.
  static absl::StatusOr<std::unique_ptr<TokenStore>> Open(
      const std::string& data_dir, Now now = absl::Now, IfMissing if_missing = IfMissing::kRefuse);

  // Deletes all tokens. A server that is started then is open to everyone who reaches it; one that
  // runs lets nobody in until it is started again. OK also where there are none.
  static absl::Status RemoveAll(const std::string& data_dir);

  // Whether callers must show a token: from the first token on, also when all were revoked or the
  // file is gone, until RemoveAll and a restart.
  bool IsRequired();

  // Whom a token stands for. UNAUTHENTICATED says why it is refused and what to do; whether it
  // expired only to who knows its secret.
  absl::StatusOr<Caller> Authenticate(absl::string_view text);

  // UNAUTHENTICATED where a token that was good once was revoked or has expired meanwhile. OK while
  // the tokens cannot be read: a damaged file lets nobody in, but throws nobody out.
  absl::Status Recheck(const std::string& token_id);

  // INVALID_ARGUMENT names the field.
  absl::StatusOr<v1::CreateTokenResponse> Create(const v1::CreateTokenRequest& request);
  // The newest first.
  absl::StatusOr<v1::ListTokensResponse> List();
  // NOT_FOUND.
  absl::Status Revoke(absl::string_view token_id);

 private:
  // Another file, or another content.
  struct Version {
    bool exists = false;
    ino_t inode = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;  // of the mode and the owner, too
    int64_t size = 0;
    bool operator==(const Version&) const = default;
  };

  TokenStore(const std::string& data_dir, Now now);

  Version CurrentVersion() const;
  // Reads the file where it is another one than last time, or could not be used.
  absl::Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<TokenRecord>> Read() const;
  // Makes "requires_tokens", durably.
  absl::Status Mark() const;
  // The token's place in `records_`; null: there is none.
  const TokenRecord* Find(absl::string_view token_id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reads, lets `change` change, writes; one process at a time.
  absl::Status Change(const std::function<absl::Status(std::vector<TokenRecord>&)>& change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string data_dir_;
  const std::string path_;
  const std::string mark_path_;
  const Now now_;
  platform::Mutex mutex_;
  Version version_ ABSL_GUARDED_BY(mutex_);
  bool required_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;  // Open has succeeded
  std::vector<TokenRecord> records_ ABSL_GUARDED_BY(mutex_);
  // Why the newest file cannot be used. Nobody gets in until it can be.
  absl::Status damage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_TOKEN_STORE_H_
