// AuditTrail: writes an audit line for each call that the authorization table selects: every call
// of a method that changes something, and for all methods the calls refused because of their caller
// (UNAUTHENTICATED, PERMISSION_DENIED).
//
// A call is seen in two places. The gate knows the caller. A gRPC interceptor, which sees the calls
// of all services, knows the object of the call and the outcome. So no handler can forget its line.
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
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_interceptor.h"
#include "platform/mutex.h"
#include "platform/token_bucket.h"
#include "server/security/audit_log.h"
#include "server/security/authorization.h"

namespace lengthwise::server {

// Thread-safe. Must outlive the server whose calls it sees.
class AuditTrail {
 public:
  // Budget of failed calls per principal; all unknown callers share one. A flood of failures must
  // not push earlier actions out of the log. Each line has the number of lines suppressed since the
  // previous one.
  static constexpr double kFailuresPerSecond = 1;
  static constexpr double kFailuresAtOnce = 100;

  explicit AuditTrail(AuditLog& log, std::function<absl::Time()> now = absl::Now);

  // Called by the gate before the call ends. `peer` is the client's address. `caller` has no
  // principal if it is unknown.
  void Admit(const grpc::CallbackServerContext& context, absl::string_view peer,
             const Caller& caller);

  // For a refusal within a call that continues, such as one message of a stream. Writes a line of
  // its own while the call is open.
  void Refuse(const grpc::CallbackServerContext& context, absl::string_view method,
              std::string resource, const absl::Status& reason);
  // Writes the line of a call, or suppresses it. The record has no time, method and outcome yet.
  // Also for a call that the edge refuses, so that gRPC does not see it.
  void Write(AuditRecord record, absl::string_view method, absl::Status outcome);

  // For the server's builder.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Interceptor();

 private:
  class Observer;
  class Factory;
  using CallId = const grpc::ServerContextBase*;

  // A caller's budget of failed calls.
  struct Failures {
    platform::TokenBucket bucket{kFailuresPerSecond, kFailuresAtOnce};
    int64_t suppressed = 0;
  };

  // The record that Admit stored for a call. Absent if Admit was not called, or if the record was
  // taken already.
  std::optional<AuditRecord> Take(CallId call);
  // Takes one call from the budget. Returns false if the line is suppressed.
  bool MayRecordFailure(AuditRecord& record);

  AuditLog& log_;
  const std::function<absl::Time()> now_;
  platform::Mutex mutex_;
  absl::flat_hash_map<CallId, AuditRecord> open_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Failures> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_AUDIT_TRAIL_H_
