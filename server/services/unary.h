// How unary handlers of the callback API answer.
#ifndef LENGTHWISE_SERVER_SERVICES_UNARY_H_
#define LENGTHWISE_SERVER_SERVICES_UNARY_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/services/status.h"

namespace lengthwise::server {

// A reactor that has answered already.
inline grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                        const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

template <typename T>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, T* response,
                                 absl::StatusOr<T> result) {
  if (result.ok()) *response = *std::move(result);
  return Answer(context, result.status());
}

// A callback that answers when it is called, on any thread. `response` lives as long as the reactor
// is not finished.
template <typename T>
auto AnswerLater(grpc::ServerUnaryReactor* reactor, T* response) {
  return [reactor, response](absl::StatusOr<T> result) {
    const grpc::Status status = ToGrpcStatus(result.status());
    if (result.ok()) *response = *std::move(result);
    reactor->Finish(status);
  };
}

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_UNARY_H_
