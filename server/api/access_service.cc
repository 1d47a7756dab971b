// lengthwise.v1.AccessService: manages a server's tokens.
#include <memory>

#include "absl/strings/str_cat.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "proto/access_service.pb.h"
#include "proto/role_name.h"
#include "proto/timestamps.h"
#include "server/api/services.h"

namespace lengthwise::server {
namespace {

absl::Status NoTokens() {
  return absl::FailedPreconditionError(
      "the server has no tokens; create the first on its machine with `lengthwise_server "
      "--data_dir "
      "DIR --create_admin_token PATH`");
}

v1::Caller Describe(const Caller& caller) {
  v1::Caller described;
  described.set_principal(caller.principal);
  described.set_role(caller.role);
  if (!caller.token_id.empty()) {
    *described.mutable_expire_time() = ToTimestamp(caller.expire_time);
  }
  return described;
}

}  // namespace

std::unique_ptr<Service> NewAccessService(Calls& calls, TokenStore* tokens) {
  auto service = std::make_unique<Service>(calls);
  // FAILED_PRECONDITION while the server has no token: the creator of the first token becomes an
  // administrator, so it must be created on the server's machine, not through its port.
  service->Serve<v1::CreateTokenRequest, v1::CreateTokenResponse>(
      Work::kLookup,
      [tokens](const auto& asked, const Caller& caller) -> absl::StatusOr<v1::CreateTokenResponse> {
        if (tokens == nullptr || !tokens->IsRequired()) return NoTokens();
        ASSIGN_OR_RETURN(v1::CreateTokenResponse created, tokens->Create(asked, caller.principal));
        const v1::Token& token = created.token();
        platform::LogInfo(caller.principal, " created token ", token.token_id(), " of ",
                          token.principal(), ", ", RoleName(token.role()));
        return created;
      });
  service->Serve<v1::ListTokensRequest, v1::ListTokensResponse>(
      Work::kLookup,
      [tokens](const auto&, const Caller&) -> absl::StatusOr<v1::ListTokensResponse> {
        if (tokens == nullptr) return v1::ListTokensResponse();
        return tokens->List();
      });
  service->Serve<v1::RevokeTokenRequest, v1::RevokeTokenResponse>(
      Work::kLookup,
      [tokens](const auto& asked, const Caller& caller) -> absl::StatusOr<v1::RevokeTokenResponse> {
        if (tokens == nullptr || !tokens->IsRequired()) return NoTokens();
        ASSIGN_OR_RETURN(v1::RevokeTokenResponse revoked, tokens->Revoke(asked));
        const std::string what = asked.token_id().empty()
                                     ? absl::StrCat("all ", revoked.count(), " tokens")
                                     : absl::StrCat("token ", asked.token_id());
        platform::LogInfo(caller.principal, " revoked ", what, " of ", revoked.principal());
        return revoked;
      });
  service->Serve<v1::GetCallerRequest, v1::Caller>(
      Work::kMemory, [](const auto&, const Caller& caller) { return Describe(caller); });
  return service;
}

}  // namespace lengthwise::server
