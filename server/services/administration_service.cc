#include "server/services/administration_service.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/services/push_stream.h"
#include "server/services/refused_stream.h"
#include "server/services/unary.h"

namespace lengthwise::server {
namespace {

// A copy tells its progress far more often than anybody can read it.
constexpr absl::Duration kBetweenResponses = absl::Milliseconds(100);

}  // namespace

grpc::ServerWriteReactor<v1::BackUpResponse>* AdministrationService::BackUp(
    grpc::CallbackServerContext* context, const v1::BackUpRequest* request) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.AdministrationService/BackUp", *request);
  if (!admission.ok()) {
    return new RefusedStream<grpc::ServerWriteReactor<v1::BackUpResponse>>(admission.status());
  }
  auto produce = [this, request = *request](const PushStream<v1::BackUpResponse>::Send& send) {
    absl::Time next = absl::InfinitePast();
    return coordinator_.BackUp(request, [&](const v1::BackUpResponse& response) {
      if (!response.complete() && absl::Now() < next) return true;
      next = absl::Now() + kBetweenResponses;
      return send(response);
    });
  };
  return streams_.Keep(
      PushStream<v1::BackUpResponse>::Start(std::move(produce), transfers_, streams_),
      *std::move(admission));
}

grpc::ServerUnaryReactor* AdministrationService::GetStorage(grpc::CallbackServerContext* context,
                                                            const v1::GetStorageRequest* request,
                                                            v1::Storage* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.AdministrationService/GetStorage", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  return AnswerOnPool<v1::Storage>(context, transfers_, response,
                                   [this] { return coordinator_.GetStorage(); });
}

}  // namespace lengthwise::server
