// How unary handlers of the callback API answer.
#ifndef LENGTHWISE_SERVER_SERVICES_UNARY_H_
#define LENGTHWISE_SERVER_SERVICES_UNARY_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/services/status.h"
#include "server/services/work_pool.h"

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

// Answers with what `read` returns, on the pool; nobody who has gone meanwhile is read for. A call
// without a deadline has one: the longest that the pool lets it wait for its turn.
template <typename T>
grpc::ServerUnaryReactor* AnswerOnPool(grpc::CallbackServerContext* context, WorkPool& pool,
                                       T* response, std::function<absl::StatusOr<T>()> read) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto answer = AnswerLater(reactor, response);
  pool.Submit(
      [context, answer, read = std::move(read)] {
        answer(context->IsCancelled()
                   ? absl::CancelledError("the call's deadline was over before its turn came")
                   : read());
      },
      [answer, &pool] {
        answer(absl::DeadlineExceededError(
            absl::StrCat("the server was busy for ", absl::FormatDuration(pool.longest_wait()),
                         " with what was asked before; try again later")));
      });
  return reactor;
}

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_UNARY_H_
