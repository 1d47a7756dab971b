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

void LogRefusal(absl::string_view method, absl::string_view address, const absl::Status& status) {
  static auto* const log = new platform::LimitedLog(absl::Seconds(10));
  log->Warning(absl::StrCat("refused ", method, " to ", address, ": ", status.message()));
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

absl::StatusOr<Caller> Gate::Decide(const Credentials& credentials, absl::string_view method,
                                    Caller* known) {
  absl::StatusOr<Caller> caller = Identify(credentials.authorization, known);
  if (!caller.ok()) return caller;
  if (known != nullptr) *known = *caller;
  RETURN_IF_ERROR(MayCall(*caller, method));
  if (!IsWorkers(method)) {
    RETURN_IF_ERROR(quotas_.TakeCall(caller->principal));
  } else if (options_.workers_need_certificate && !credentials.has_certificate) {
    return absl::UnauthenticatedError(
        "the server asks workers for a certificate that its --tls_client_ca has signed; start "
        "the worker with --tls_certificate and --tls_key");
  }
  return caller;
}

absl::StatusOr<Caller> Gate::Meet(const Peer& peer, absl::string_view method,
                                  absl::string_view authorization) {
  Caller refused;
  absl::StatusOr<Caller> caller = Identify(authorization, &refused);
  if (caller.ok()) return caller;
  // Names that the API does not have are the stranger's text, which belongs into no log.
  const Rule* rule = FindRule(method);
  LogRefusal(rule == nullptr ? "an unknown method" : rule->method, peer.address, caller.status());
  if (audit_ != nullptr) {
    AuditedCall(*audit_, method, refused, peer.address).End(caller.status());
  }
  return caller.status();
}

absl::Status Gate::Admit(const grpc::CallbackServerContext& context, absl::string_view method,
                         Admission& admission) {
  Credentials credentials;
  const auto& metadata = context.client_metadata();
  if (const auto found = metadata.find(rpc::kAuthorizationKey); found != metadata.end()) {
    credentials.authorization = absl::string_view(found->second.data(), found->second.size());
  }
  const Peer peer = PeerOf(context.peer());
  credentials.has_certificate = peer.has_certificate;
  const absl::Status status = Decide(credentials, method, &admission.caller).status();
  if (audit_ != nullptr) {
    admission.audited = AuditedCall(*audit_, method, admission.caller, peer.address);
  }
  if (absl::IsUnauthenticated(status)) LogRefusal(method, peer.address, status);
  return status;
}

absl::Status Gate::AdmitStream(const grpc::CallbackServerContext& context, absl::string_view method,
                               Admission& admission) {
  RETURN_IF_ERROR(Admit(context, method, admission));
  if (!IsWorkers(method)) {
    ASSIGN_OR_RETURN(admission.stream, quotas_.OpenStream(admission.caller.principal));
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
