#include "server/services/access_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/log.h"
#include "server/access/token_records.h"
#include "server/services/unary.h"

namespace lengthwise::server {
namespace {

absl::Status NoTokens() {
  return absl::FailedPreconditionError(
      "the server has no tokens; make the first on its machine with `lengthwise_server --data_dir "
      "DIR --create_admin_token PATH`");
}

}  // namespace

grpc::ServerUnaryReactor* AccessService::CreateToken(grpc::CallbackServerContext* context,
                                                     const v1::CreateTokenRequest* request,
                                                     v1::CreateTokenResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.AccessService/CreateToken", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (tokens_ == nullptr || !tokens_->IsRequired()) return Answer(context, NoTokens());
  absl::StatusOr<v1::CreateTokenResponse> created = tokens_->Create(*request);
  if (created.ok()) {
    const v1::Token& token = created->token();
    platform::LogInfo(absl::StrCat(caller->principal, " made the token ", token.token_id(), " of ",
                                   token.principal(), ", ", RoleName(token.role())));
  }
  return Answer(context, response, std::move(created));
}

grpc::ServerUnaryReactor* AccessService::ListTokens(grpc::CallbackServerContext* context,
                                                    const v1::ListTokensRequest* request,
                                                    v1::ListTokensResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.AccessService/ListTokens", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (tokens_ == nullptr) return Answer(context, absl::OkStatus());
  return Answer(context, response, tokens_->List());
}

grpc::ServerUnaryReactor* AccessService::RevokeToken(grpc::CallbackServerContext* context,
                                                     const v1::RevokeTokenRequest* request,
                                                     v1::RevokeTokenResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.AccessService/RevokeToken", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (tokens_ == nullptr || !tokens_->IsRequired()) return Answer(context, NoTokens());
  const absl::Status status = tokens_->Revoke(request->token_id());
  if (status.ok()) {
    platform::LogInfo(absl::StrCat(caller->principal, " revoked the token ", request->token_id()));
  }
  return Answer(context, status);
}

grpc::ServerUnaryReactor* AccessService::GetCaller(grpc::CallbackServerContext* context,
                                                   const v1::GetCallerRequest* request,
                                                   v1::Caller* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.AccessService/GetCaller", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  response->set_principal(caller->principal);
  response->set_role(caller->role);
  if (!caller->token_id.empty()) {
    response->mutable_expire_time()->set_seconds(absl::ToUnixSeconds(caller->expire_time));
  }
  return Answer(context, absl::OkStatus());
}

}  // namespace lengthwise::server
