// lengthwise.v1.AccessService: manages a server's tokens.
#ifndef LENGTHWISE_SERVER_API_ACCESS_SERVICE_H_
#define LENGTHWISE_SERVER_API_ACCESS_SERVICE_H_

#include "proto/access_service.grpc.pb.h"
#include "server/api/calls.h"
#include "server/security/token_store.h"

namespace lengthwise::server {

class AccessService final : public v1::AccessService::CallbackService {
 public:
  // `tokens` is null for a server that never has tokens. Both must outlive the service.
  AccessService(Calls& calls, TokenStore* tokens) : calls_(calls), tokens_(tokens) {}

  // FAILED_PRECONDITION while the server has no token: the creator of the first token becomes an
  // administrator, so it must be created on the server's machine, not through its port.
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
