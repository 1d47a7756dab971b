// AuditedCall: writes the line of a call that the authorization table selects: every call of a
// method that changes something, and for all methods the calls refused because of their caller
// (UNAUTHENTICATED, PERMISSION_DENIED).
//
// The gate knows the caller. Who serves all calls (server/api/calls.h, open_streams.h) tells the
// messages and the outcome. So no handler can forget its line.
#ifndef LENGTHWISE_SERVER_SECURITY_AUDITED_CALL_H_
#define LENGTHWISE_SERVER_SECURITY_AUDITED_CALL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/security/audit_log.h"
#include "server/security/authorization.h"

namespace lengthwise::server {

class AuditedCall {
 public:
  // Records nothing.
  AuditedCall() = default;
  // `log` must outlive it. `peer` is the client's address. `caller` has no principal if it is
  // unknown. Records nothing for a method that the table does not have.
  AuditedCall(AuditLog& log, absl::string_view method, const Caller& caller,
              absl::string_view peer);

  bool is_recorded() const { return rule_ != nullptr; }

  // A request. Of a stream's only the first counts.
  void SetRequest(const google::protobuf::Message& request);
  // A response. Of a stream's the last that names something counts.
  void SetResponse(const google::protobuf::Message& response);
  // For a refusal within a call that continues, such as one message of a stream: a line of its own.
  void Refuse(std::string resource, const absl::Status& reason) const;
  // Call it once.
  void End(const absl::Status& outcome);

 private:
  AuditLog* log_ = nullptr;
  const Rule* rule_ = nullptr;
  bool has_request_ = false;
  AuditRecord record_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_AUDITED_CALL_H_
