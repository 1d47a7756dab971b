// Makes a line of the audit log of each call that the authorisation table says: every call of a
// method that changes something, and of all methods those that are refused for who makes them
// (UNAUTHENTICATED, PERMISSION_DENIED).
//
// A call passes two places. The gate says who makes it and what it is about; a gRPC interceptor,
// which sees the calls of all services, says how it ended. So no handler can forget its line.
#ifndef LENGTHWISE_SERVER_SECURITY_AUDIT_TRAIL_H_
#define LENGTHWISE_SERVER_SECURITY_AUDIT_TRAIL_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_interceptor.h"
#include "platform/mutex.h"
#include "platform/token_bucket.h"
#include "server/security/audit_log.h"
#include "server/security/authorization.h"

namespace lengthwise::server {

// Thread-safe. Outlives the server whose calls it sees.
class AuditTrail {
 public:
  // Calls that did not succeed, of one principal (all callers that are not known count as one): a
  // flood of them must not push out of the log what was done before. Each line says how many were
  // left out since the one before.
  static constexpr double kFailuresPerSecond = 1;
  static constexpr double kFailuresAtOnce = 100;

  explicit AuditTrail(AuditLog& log, std::function<absl::Time()> now = absl::Now);

  // For the gate, before the call ends. `peer` is the client's address. `caller` is null where it
  // is not known, `request` where it is a stream.
  void Admit(const grpc::CallbackServerContext& context, absl::string_view peer,
             absl::string_view method, const Caller* caller,
             const google::protobuf::Message* request);

  // For what is refused within a call that goes on, such as one message of a stream: a line of its
  // own, while the call is open.
  void Refuse(const grpc::CallbackServerContext& context, absl::string_view method,
              std::string resource, const absl::Status& reason);

  // For the server's builder.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Interceptor();

 private:
  class Observer;
  class Factory;
  using CallId = const grpc::ServerContextBase*;

  // A caller's budget of calls that fail.
  struct Failures {
    platform::TokenBucket bucket{kFailuresPerSecond, kFailuresAtOnce};
    int64_t suppressed = 0;
  };

  // What Admit told of a call; absent where it was not called, or this was before.
  std::optional<AuditRecord> Take(CallId call);
  // Writes the line of a call, or leaves it out.
  void Write(AuditRecord record, absl::string_view method, absl::Status outcome);
  // Takes one from the budget. False: the line is left out.
  bool MayRecordFailure(AuditRecord& record);

  AuditLog& log_;
  const std::function<absl::Time()> now_;
  platform::Mutex mutex_;
  absl::flat_hash_map<CallId, AuditRecord> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Failures> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_AUDIT_TRAIL_H_
