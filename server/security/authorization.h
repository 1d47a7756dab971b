// Who may call what: one table, a line for each rpc. What has no line is refused, to administrators
// too.
#ifndef LENGTHWISE_SERVER_SECURITY_AUTHORIZATION_H_
#define LENGTHWISE_SERVER_SECURITY_AUTHORIZATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/access_service.pb.h"

namespace lengthwise::server {

// Whom a call is made for.
struct Caller {
  std::string principal;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  // Of the token; empty and never for the anonymous caller of a server without tokens.
  std::string token_id;
  absl::Time expire_time = absl::InfiniteFuture();
};

// The caller of a server without tokens: everyone who reaches it may do everything.
Caller AnonymousCaller();

enum class Access {
  // Without a token, too.
  kPublic,
  // With any token.
  kAuthenticated,
  // Viewers, submitters and administrators.
  kRead,
  // Submitters, in their own name, and administrators.
  kSubmit,
  // Submitters for their own experiments (MayChange), and administrators for all.
  kChange,
  // Workers, and administrators. With a certificate, where the server asks workers for one.
  kWork,
  // Administrators.
  kAdminister,
};

// Which calls of a method the audit log has (audit_trail.h).
enum class Audit {
  // All, with their outcomes: methods that change something.
  kEveryCall,
  // Those that are refused for who makes them: methods that only read, and those that workers call
  // all the time.
  kRefusals,
};

struct Rule {
  // "lengthwise.v1.ExperimentService/GetTrial".
  absl::string_view method;
  Access access;
  Audit audit = Audit::kEveryCall;
  // For the audit log: the request's fields that say what the call is about, with spaces between
  // them, and the response's that name what it has made. "experiment.name" is the name in the field
  // experiment. Texts and enumerations.
  absl::string_view resource = "";
  absl::string_view made = "";
};

// The table.
absl::Span<const Rule> Rules();

// The line of a method; null: there is none, and nobody may call it.
const Rule* FindRule(absl::string_view method);

// Whether the table lets a role call a method; PERMISSION_DENIED says who may.
absl::Status MayCall(const Caller& caller, absl::string_view method);

// Whether a caller that may call a method of kChange may do so to an experiment of `owner`.
// PERMISSION_DENIED.
absl::Status MayChange(const Caller& caller, absl::string_view experiment, absl::string_view owner);

// The owner of what the caller submits: its principal; on a server without tokens whom the request
// names. PERMISSION_DENIED where the request names somebody else.
absl::Status MaySubmitFor(const Caller& caller, absl::string_view requested_owner);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_AUTHORIZATION_H_
