// The door of the server: every handler asks here first who calls, whether it may, and whether it
// has not taken too much.
//
// gRPC's own hook for this, an AuthMetadataProcessor, exists for encrypted connections alone, and
// its interceptors cannot answer a call with a status; so each handler begins with Admit, and a
// test that calls every method of the running server (server/api/every_rpc_test.cc) sees that
// none forgot.
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
#include "google/protobuf/message.h"
#include "grpcpp/server_context.h"
#include "server/edge/peers.h"
#include "server/security/audit_trail.h"
#include "server/security/authorization.h"
#include "server/security/quotas.h"
#include "server/security/token_store.h"

namespace lengthwise::server {

// Thread-safe.
class Gate {
 public:
  struct Options {
    // Workers show a certificate that the server's authority has signed, beside their token.
    bool workers_need_certificate = false;
    Quotas::Options quotas;
    // Hears who makes each call. It outlives the gate; null: there is no audit log.
    AuditTrail* audit = nullptr;
  };

  // What a call shows of its caller.
  struct Credentials {
    // Of the metadata "authorization"; empty without it.
    absl::string_view authorization;
    // The transport has verified a certificate.
    bool has_certificate = false;
  };

  // Without `tokens` the server has none, ever. `peers` has the connections of the server's edge,
  // whose certificates the gate asks for and which it trusts from their first admitted call on;
  // null: gRPC's connections are the clients'. Both outlive the gate.
  Gate(const Options& options, TokenStore* tokens, std::function<absl::Time()> now = absl::Now,
       Peers* peers = nullptr);

  // Who calls `method` ("lengthwise.v1.ExperimentService/GetTrial"). UNAUTHENTICATED: no token
  // where one is needed, one that is not valid, no certificate; PERMISSION_DENIED: the role may
  // not; RESOURCE_EXHAUSTED: too many calls, with a google.rpc.RetryInfo, or, without one, a
  // client's request that is too large. Workers' calls are not counted: their leases limit them.
  // Callers without a valid token are a line in the log, at most one in ten seconds.
  absl::StatusOr<Caller> Admit(const grpc::CallbackServerContext& context, absl::string_view method,
                               const google::protobuf::Message& request);

  // The same for a call that stays open. It ends when `stream` is destroyed.
  struct Admission {
    Caller caller;
    Quotas::Stream stream;
  };
  absl::StatusOr<Admission> AdmitStream(const grpc::CallbackServerContext& context,
                                        absl::string_view method,
                                        const google::protobuf::Message& request);
  // For methods whose requests are a stream, too.
  absl::StatusOr<Admission> AdmitStream(const grpc::CallbackServerContext& context,
                                        absl::string_view method);

  // Puts what was refused within an admitted call, which goes on, into the audit log.
  void Refuse(const grpc::CallbackServerContext& context, absl::string_view method,
              std::string resource, const absl::Status& reason) const {
    if (options_.audit != nullptr) {
      options_.audit->Refuse(context, method, std::move(resource), reason);
    }
  }

  // Whether a caller that was admitted still would be: for streams, which stay open.
  // UNAUTHENTICATED: its token was revoked or has expired; it had none, and the server asks for one
  // now.
  absl::Status Recheck(const Caller& caller);

  // What Admit decides, but for the request's size.
  absl::StatusOr<Caller> Decide(const Credentials& credentials, absl::string_view method);

 private:
  absl::StatusOr<Caller> Admit(const grpc::CallbackServerContext& context, absl::string_view method,
                               const google::protobuf::Message* request);
  absl::StatusOr<Caller> Identify(absl::string_view authorization);
  // Whether a caller that is known may make the call, and has not made too many.
  absl::Status Check(const Caller& caller, const Credentials& credentials,
                     absl::string_view method);
  absl::StatusOr<Admission> WithStream(absl::StatusOr<Caller> caller, absl::string_view method);

  const Options options_;
  TokenStore* const tokens_;
  Quotas quotas_;
  Peers* const peers_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_GATE_H_
