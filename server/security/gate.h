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
#include "grpcpp/server_context.h"
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

  // A call's proof of its caller.
  struct Credentials {
    // From the metadata "authorization". Empty if absent.
    absl::string_view authorization;
    // The transport verified a client certificate.
    bool has_certificate = false;
  };

  // `tokens` null: the server never has tokens. `audit` null: no audit log. Both must outlive the
  // gate.
  Gate(const Options& options, TokenStore* tokens, std::function<absl::Time()> now = absl::Now,
       AuditLog* audit = nullptr);

  // For the edge (Edge::Admit): returns the caller of a call that gRPC has not seen yet.
  // UNAUTHENTICATED if its token is missing or invalid, as Admit. `method` is the client's text.
  absl::StatusOr<Caller> Meet(const Peer& peer, absl::string_view method,
                              absl::string_view authorization);

  // Of a call that is refused: what the credentials prove.
  struct Admission {
    Caller caller;
    AuditedCall audited;
    Quotas::Stream stream;
  };
  // Admits the caller of `method` ("lengthwise.v1.ExperimentService/GetTrial"). UNAUTHENTICATED if
  // a token is missing or invalid, or a certificate is missing. PERMISSION_DENIED if the role may
  // not call it. RESOURCE_EXHAUSTED with a google.rpc.RetryInfo for too many calls. Workers' calls
  // are not counted: their leases limit them. Callers without a valid token are logged, at most
  // once in ten seconds.
  absl::Status Admit(const grpc::CallbackServerContext& context, absl::string_view method,
                     Admission& admission);
  // As Admit, for a call that stays open. It counts until `admission.stream` is destroyed.
  absl::Status AdmitStream(const grpc::CallbackServerContext& context, absl::string_view method,
                           Admission& admission);

  // Checks for an open stream that its caller would still be admitted. UNAUTHENTICATED if its token
  // was revoked or has expired, or if it has none and the server now asks for one.
  absl::Status Recheck(const Caller& caller);

  // The decision of Admit. `known`, unless null, gets the caller also of a call that is refused, as
  // far as the credentials prove who that is.
  absl::StatusOr<Caller> Decide(const Credentials& credentials, absl::string_view method,
                                Caller* known = nullptr);

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
