// WebTokens: tokens of an OpenID Connect provider (JWT, RFC 7519), which a server accepts beside
// its own. libcjose checks their signatures.
//
// The provider's public keys are a JWK set (RFC 7517), in a file or at a URL. A thread reads them
// again at an interval, so that no call waits for the provider.
#ifndef LENGTHWISE_SERVER_SECURITY_WEB_TOKENS_H_
#define LENGTHWISE_SERVER_SECURITY_WEB_TOKENS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "platform/periodic_thread.h"
#include "server/security/authorization.h"

namespace lengthwise::server {

// Thread-safe.
class WebTokens {
 public:
  struct Options {
    // The claims `iss` and `aud` that a token must have.
    std::string issuer;
    std::string audience;
    // Path or URL of the JWK set.
    std::string keys;
    // The claims that name the principal and the role.
    std::string principal_claim = "sub";
    std::string role_claim = "lengthwise_role";
  };
  using Now = std::function<absl::Time()>;

  // A token is accepted this long before its `nbf`, because clocks differ.
  static constexpr absl::Duration kLeeway = absl::Minutes(1);
  // Interval at which the keys are read.
  static constexpr absl::Duration kInterval = absl::Seconds(30);

  // FAILED_PRECONDITION if users other than root and the server's can change the file of keys, and
  // INVALID_ARGUMENT if it has none. A URL that does not answer is only logged.
  static absl::StatusOr<std::unique_ptr<WebTokens>> Open(Options options, Now now = absl::Now);

  // Returns the caller of a token that the provider has signed for this server. It may have expired
  // since. Otherwise UNAUTHENTICATED with the reason; `refused`, unless null, gets the caller of a
  // signed token whose claims do not suffice. Takes up to a millisecond for an unknown token.
  absl::StatusOr<Caller> Authenticate(absl::string_view text, Caller* refused);

  // Reads the keys again. If they cannot be used, the earlier ones stay, with a warning in the log.
  void Refresh();

  // True if the caller's token is a provider's.
  static bool IsOf(const Caller& caller) { return absl::StartsWith(caller.token_id, "jwt-"); }

 private:
  struct Keys;

  WebTokens(Options options, Now now);
  absl::Status ReadKeys();
  static absl::StatusOr<std::shared_ptr<const Keys>> ParseKeys(std::string text);
  // The payload of a token with a right signature.
  static absl::StatusOr<std::string> Verify(const Keys& keys, absl::string_view text);
  // Checks a payload and fills in the caller, beginning with its principal.
  absl::Status ReadClaims(absl::string_view payload, Caller& caller) const;

  const Options options_;
  const Now now_;
  platform::Mutex mutex_;
  std::shared_ptr<const Keys> keys_ ABSL_GUARDED_BY(mutex_);
  absl::Status refreshed_ ABSL_GUARDED_BY(mutex_);
  // By the tokens' SHA-256: only those that a current key has signed, so that strangers can neither
  // fill nor displace it.
  absl::flat_hash_map<std::string, Caller> verified_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<platform::PeriodicThread> refresh_;  // last: it uses the other members
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_WEB_TOKENS_H_
