// lengthwise.v1.AccessService over a server's tokens.
#ifndef LENGTHWISE_SERVER_API_ACCESS_SERVICE_H_
#define LENGTHWISE_SERVER_API_ACCESS_SERVICE_H_

#include "proto/access_service.grpc.pb.h"
#include "server/api/calls.h"
#include "server/security/token_store.h"

namespace lengthwise::server {

class AccessService final : public v1::AccessService::CallbackService {
 public:
  // `tokens` is null where the server has none, ever. Both outlive the service.
  AccessService(Calls& calls, TokenStore* tokens) : calls_(calls), tokens_(tokens) {}

  // FAILED_PRECONDITION while the server has no token: who makes the first becomes its
  // administrator, which takes access to the server's machine and not only to its port.
  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext* context,
                                        const v1::CreateTokenRequest* request,
                                        v1::CreateTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListTokens(grpc::CallbackServerContext* context,
                                       const v1::ListTokensRequest* request,
                                       v1::ListTokensResponse* response) override;
  grpc::ServerUnaryReactor* RevokeToken(grpc::CallbackServerContext* context,
                                        const v1::RevokeTokenRequest* request,
                                        v1::RevokeTokenResponse* response) override;
  grpc::ServerUnaryReactor* GetCaller(grpc::CallbackServerContext* context,
                                      const v1::GetCallerRequest* request,
                                      v1::Caller* response) override;

 private:
  Calls& calls_;
  TokenStore* const tokens_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_ACCESS_SERVICE_H_
