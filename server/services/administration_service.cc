#include "server/services/administration_service.h"

#include "platform/version.h"
#include "server/services/refused_stream.h"
#include "server/services/unary.h"

namespace lengthwise::server {
namespace {

// A copy tells its progress far more often than anybody can read it.
constexpr absl::Duration kBetweenResponses = absl::Milliseconds(100);

void SetTime(absl::Time time, google::protobuf::Timestamp& timestamp) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

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
  return streams_.Keep(PushStream<v1::BackUpResponse>::Start(
                           context, admission->caller, std::move(produce), transfers_, streams_),
                       *std::move(admission));
}

grpc::ServerUnaryReactor* AdministrationService::GetStorage(grpc::CallbackServerContext* context,
                                                            const v1::GetStorageRequest* request,
                                                            v1::Storage* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.AdministrationService/GetStorage", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  return AnswerOnPool<v1::Storage>(context, transfers_.pool, response,
                                   [this] { return coordinator_.GetStorage(); });
}

grpc::ServerUnaryReactor* AdministrationService::GetServer(grpc::CallbackServerContext* context,
                                                           const v1::GetServerRequest* request,
                                                           v1::Server* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.AdministrationService/GetServer", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  response->set_program_version(platform::kVersion);
  response->set_source_revision(platform::kSourceRevision);
  response->set_worker_api_version(platform::kWorkerApiVersion);
  SetTime(start_time_, *response->mutable_start_time());
  SetTime(absl::Now(), *response->mutable_time());
  return Answer(context, absl::OkStatus());
}

}  // namespace lengthwise::server
