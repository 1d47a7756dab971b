// Authorization: who may call which rpc, in one table with an entry per rpc. An rpc without an
// entry is refused for everyone, including administrators.
#ifndef LENGTHWISE_SERVER_SECURITY_AUTHORIZATION_H_
#define LENGTHWISE_SERVER_SECURITY_AUTHORIZATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/access_service.pb.h"

namespace lengthwise::server {

// The principal that a call is made for.
struct Caller {
  std::string principal;
  v1::Role role = v1::ROLE_UNSPECIFIED;
  // The token's id and expiry. Empty, and never expiring, for the anonymous caller of a server
  // without tokens.
  std::string token_id;
  absl::Time expire_time = absl::InfiniteFuture();
  // The principal that created the token. Empty if unknown.
  std::string token_maker = {};
};

// The caller of a server without tokens. Everyone who can reach such a server may do everything.
Caller AnonymousCaller();

// The user to record. Empty if the server has no tokens.
inline std::string PrincipalOf(const Caller& caller) {
  return caller.token_id.empty() ? "" : caller.principal;
}

enum class Access {
  // Everyone, without a token.
  kPublic,
  // Any token.
  kAuthenticated,
  // Viewers, submitters and administrators.
  kRead,
  // Submitters, in their own name, and administrators.
  kSubmit,
  // Submitters, for their own experiments (MayChange), and administrators, for all.
  kChange,
  // Workers and administrators. Needs a certificate if the server asks workers for one.
  kWork,
  // Backup timers and administrators.
  kBackUp,
  // Administrators.
  kAdminister,
};

// Selects the calls of a method that the audit log records (audited_call.h).
enum class Audit {
  // All calls with their outcomes. For methods that change something.
  kEveryCall,
  // Calls refused because of their caller. For methods that only read, and those that workers call
  // all the time.
  kRefusals,
};

struct Rule {
  // "lengthwise.v1.ExperimentService/GetTrial".
  absl::string_view method;
  Access access;
  Audit audit = Audit::kEveryCall;
  // For the audit log: the request's fields that name the object of the call, separated by spaces,
  // and the response's fields that name what was created. "experiment.name" is the field name in
  // the field experiment. Texts and enumerations.
  absl::string_view resource = "";
  absl::string_view made = "";
};

// The table.
absl::Span<const Rule> Rules();

// The entry of a method. Null if there is none, in which case no role may call it.
const Rule* FindRule(absl::string_view method);

// OK if the table lets the caller's role call the method. PERMISSION_DENIED names the roles that
// may.
absl::Status MayCall(const Caller& caller, absl::string_view method);

// OK if a caller that may submit may also submit users' code, which the server takes from the role
// `least`, SUBMITTER or ADMIN, and from administrators. PERMISSION_DENIED.
absl::Status MaySubmitCode(const Caller& caller, v1::Role least);

// OK if a caller that may call a kChange method may do so for an experiment of `owner`.
// PERMISSION_DENIED.
absl::Status MayChange(const Caller& caller, absl::string_view experiment, absl::string_view owner);

// The owner of what the caller submits: the caller's principal, or on a server without tokens the
// one that the request names. PERMISSION_DENIED if the request names another principal.
absl::Status MaySubmitFor(const Caller& caller, absl::string_view requested_owner);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_AUTHORIZATION_H_
