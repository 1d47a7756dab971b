// lengthwise.v1.AccessService: manages a server's tokens.
#include <memory>

#include "absl/strings/str_cat.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "proto/access_service.grpc.pb.h"
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

class AccessService final : public v1::AccessService::CallbackService {
 public:
  AccessService(Calls& calls, TokenStore* tokens) : calls_(calls), tokens_(tokens) {}

  // FAILED_PRECONDITION while the server has no token: the creator of the first token becomes an
  // administrator, so it must be created on the server's machine, not through its port.
  UnaryReactor* CreateToken(CallContext* context, const v1::CreateTokenRequest* request,
                            v1::CreateTokenResponse* response) override {
    return calls_.Serve(
        Work::kLookup, context, request, response,
        [this](const auto& asked, const Caller& caller) -> absl::StatusOr<v1::CreateTokenResponse> {
          if (tokens_ == nullptr || !tokens_->IsRequired()) return NoTokens();
          ASSIGN_OR_RETURN(v1::CreateTokenResponse created,
                           tokens_->Create(asked, caller.principal));
          const v1::Token& token = created.token();
          platform::LogInfo(caller.principal, " created token ", token.token_id(), " of ",
                            token.principal(), ", ", RoleName(token.role()));
          return created;
        });
  }

  UnaryReactor* ListTokens(CallContext* context, const v1::ListTokensRequest* request,
                           v1::ListTokensResponse* response) override {
    return calls_.Serve(
        Work::kLookup, context, request, response,
        [this](const auto&, const Caller&) -> absl::StatusOr<v1::ListTokensResponse> {
          if (tokens_ == nullptr) return v1::ListTokensResponse();
          return tokens_->List();
        });
  }

  UnaryReactor* RevokeToken(CallContext* context, const v1::RevokeTokenRequest* request,
                            v1::RevokeTokenResponse* response) override {
    return calls_.Serve(
        Work::kLookup, context, request, response,
        [this](const auto& asked, const Caller& caller) -> absl::StatusOr<v1::RevokeTokenResponse> {
          if (tokens_ == nullptr || !tokens_->IsRequired()) return NoTokens();
          ASSIGN_OR_RETURN(v1::RevokeTokenResponse revoked, tokens_->Revoke(asked));
          const std::string what = asked.token_id().empty()
                                       ? absl::StrCat("all ", revoked.count(), " tokens")
                                       : absl::StrCat("token ", asked.token_id());
          platform::LogInfo(caller.principal, " revoked ", what, " of ", revoked.principal());
          return revoked;
        });
  }

  UnaryReactor* GetCaller(CallContext* context, const v1::GetCallerRequest* request,
                          v1::Caller* response) override {
    return calls_.Serve(Work::kMemory, context, request, response,
                        [](const auto&, const Caller& caller) -> absl::StatusOr<v1::Caller> {
                          v1::Caller described;
                          described.set_principal(caller.principal);
                          described.set_role(caller.role);
                          if (!caller.token_id.empty()) {
                            *described.mutable_expire_time() = ToTimestamp(caller.expire_time);
                          }
                          return described;
                        });
  }

 private:
  Calls& calls_;
  TokenStore* const tokens_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewAccessService(Calls& calls, TokenStore* tokens) {
  return std::make_unique<AccessService>(calls, tokens);
}

}  // namespace lengthwise::server
