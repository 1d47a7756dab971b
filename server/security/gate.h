// Gate: every handler first asks here who calls, whether the caller may, and whether it is within
// its quota.
//
// gRPC's own hook for this, AuthMetadataProcessor, only works on encrypted connections, and its
// interceptors cannot answer a call with a status. So each handler begins with Admit, and a test
// that calls every method of the running server (server/api/every_rpc_test.cc) checks that none
// forgets it.
#ifndef LENGTHWISE_SERVER_SECURITY_GATE_H_
#define LENGTHWISE_SERVER_SECURITY_GATE_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/edge/peers.h"
#include "server/security/audit_log.h"
#include "server/security/audited_call.h"
#include "server/security/authorization.h"
#include "server/security/quotas.h"
#include "server/security/token_store.h"

namespace lengthwise::server {

// Thread-safe.
class Gate {
 public:
  struct Options {
    // Workers must present a certificate signed by the server's authority, in addition to their
    // token.
    bool workers_need_certificate = false;
    Quotas::Options quotas;
  };

  // `tokens` null: the server never has tokens. `audit` null: no audit log. Both must outlive the
  // gate.
  Gate(const Options& options, TokenStore* tokens, std::function<absl::Time()> now = absl::Now,
       AuditLog* audit = nullptr);

  // A call's caller. Of one that is refused: what its credentials prove.
  struct Admission {
    Caller caller;
    AuditedCall audited;
    Quotas::Stream stream;
  };
  // Finds the caller of `method` ("lengthwise.v1.ExperimentService/GetTrial", or any text of a
  // stranger) by the metadata `authorization`, empty if absent. UNAUTHENTICATED if its token is
  // missing or invalid. Callers without a valid token are logged, at most once in ten seconds.
  absl::Status Meet(const Peer& peer, absl::string_view method, absl::string_view authorization,
                    Admission& admission);
  // Meets the caller and admits it to `method`. UNAUTHENTICATED also if a certificate is missing.
  // PERMISSION_DENIED if the role may not call it. RESOURCE_EXHAUSTED with a google.rpc.RetryInfo
  // for too many calls. Workers' calls are not counted: their leases limit them.
  absl::Status Admit(const Peer& peer, absl::string_view method, absl::string_view authorization,
                     Admission& admission);
  // As Admit, for a call that stays open. It counts until `admission.stream` is destroyed.
  absl::Status AdmitStream(const Peer& peer, absl::string_view method,
                           absl::string_view authorization, Admission& admission);

  // Checks for an open stream that its caller would still be admitted. UNAUTHENTICATED if its token
  // was revoked or has expired, or if it has none and the server now asks for one.
  absl::Status Recheck(const Caller& caller);

 private:
  // `refused` as of TokenStore::Authenticate.
  absl::StatusOr<Caller> Identify(absl::string_view authorization, Caller* refused);

  const Options options_;
  TokenStore* const tokens_;
  Quotas quotas_;
  AuditLog* const audit_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_GATE_H_
