#include "server/services/administration_service.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/services/push_stream.h"
#include "server/services/unary.h"

namespace lengthwise::server {
namespace {

// A copy tells its progress far more often than anybody can read it.
constexpr absl::Duration kBetweenResponses = absl::Milliseconds(100);

}  // namespace

grpc::ServerWriteReactor<v1::BackUpResponse>* AdministrationService::BackUp(
    grpc::CallbackServerContext*, const v1::BackUpRequest* request) {
  auto produce = [this, request = *request](const PushStream<v1::BackUpResponse>::Send& send) {
    absl::Time next = absl::InfinitePast();
    return coordinator_.BackUp(request, [&](const v1::BackUpResponse& response) {
      if (!response.complete() && absl::Now() < next) return true;
      next = absl::Now() + kBetweenResponses;
      return send(response);
    });
  };
  return PushStream<v1::BackUpResponse>::Start(std::move(produce), transfers_, streams_);
}

grpc::ServerUnaryReactor* AdministrationService::GetStorage(grpc::CallbackServerContext* context,
                                                            const v1::GetStorageRequest*,
                                                            v1::Storage* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  transfers_.Submit(
      [this, answer = AnswerLater(reactor, response)] { answer(coordinator_.GetStorage()); });
  return reactor;
}

}  // namespace lengthwise::server
