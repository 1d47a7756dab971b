#include "server/security/gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "rpc/token.h"

namespace lengthwise::server {
namespace {

absl::Status NoToken() {
  return absl::UnauthenticatedError(
      "the server asks for a token; name the file that holds yours with --token_file, or in "
      "~/.config/lengthwise/config.yaml (an administrator makes one with `lengthwise auth "
      "create-token`)");
}

void LogRefusal(absl::string_view method, const Peer& peer, const absl::Status& status) {
  static auto* const log = new platform::LimitedLog(absl::Seconds(10));
  // Names that the API does not have are a stranger's text, which belongs into no log.
  const absl::string_view name = FindRule(method) == nullptr ? "an unknown method" : method;
  log->Warning(absl::StrCat("refused ", name, " to ", peer.address, ": ", status.message()));
}

bool IsWorkers(absl::string_view method) {
  const Rule* rule = FindRule(method);
  return rule != nullptr && rule->access == Access::kWork;
}

}  // namespace

Gate::Gate(const Options& options, TokenStore* tokens, std::function<absl::Time()> now,
           AuditLog* audit)
    : options_(options), tokens_(tokens), quotas_(options.quotas, std::move(now)), audit_(audit) {}

absl::StatusOr<Caller> Gate::Identify(absl::string_view authorization, Caller* refused) {
  if (tokens_ == nullptr || !tokens_->IsRequired()) return AnonymousCaller();
  if (authorization.empty()) return NoToken();
  if (!absl::ConsumePrefix(&authorization, rpc::kBearerPrefix)) {
    return absl::UnauthenticatedError("the metadata \"authorization\" is not \"Bearer lw_...\"");
  }
  return tokens_->Authenticate(authorization, refused);
}

absl::Status Gate::Recheck(const Caller& caller) {
  if (tokens_ == nullptr || !tokens_->IsRequired()) return absl::OkStatus();
  return caller.token_id.empty() ? NoToken() : tokens_->Recheck(caller);
}

absl::Status Gate::Meet(const Peer& peer, absl::string_view method, absl::string_view authorization,
                        Admission& admission) {
  absl::StatusOr<Caller> caller = Identify(authorization, &admission.caller);
  if (caller.ok()) admission.caller = *caller;
  if (audit_ != nullptr) {
    admission.audited = AuditedCall(*audit_, method, admission.caller, peer.address);
  }
  if (!caller.ok()) LogRefusal(method, peer, caller.status());
  return caller.status();
}

absl::Status Gate::Admit(const Peer& peer, absl::string_view method,
                         absl::string_view authorization, Admission& admission) {
  RETURN_IF_ERROR(Meet(peer, method, authorization, admission));
  RETURN_IF_ERROR(MayCall(admission.caller, method));
  if (!IsWorkers(method)) return quotas_.TakeCall(admission.caller.principal);
  if (!options_.workers_need_certificate || peer.has_certificate) return absl::OkStatus();
  absl::Status status = absl::UnauthenticatedError(
      "the server asks workers for a certificate that its --tls_client_ca has signed; start "
      "the worker with --tls_certificate and --tls_key");
  LogRefusal(method, peer, status);
  return status;
}

absl::Status Gate::AdmitStream(const Peer& peer, absl::string_view method,
                               absl::string_view authorization, Admission& admission) {
  RETURN_IF_ERROR(Admit(peer, method, authorization, admission));
  if (!IsWorkers(method)) {
    ASSIGN_OR_RETURN(admission.stream, quotas_.OpenStream(admission.caller.principal));
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
