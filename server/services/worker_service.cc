#include "server/services/worker_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/printable_message.h"
#include "server/services/artifact_upload.h"
#include "server/services/event_stream.h"
#include "server/services/refused_stream.h"
#include "server/services/unary.h"
#include "server/services/validation.h"

namespace lengthwise::server {
namespace {

constexpr int64_t kMaxWaitSeconds = 60;

// What a worker says of itself is stored and shown to people. Its control characters are written
// out, not refused: they may come from a library's error, and the training is sound.
template <typename Request>
Request Printable(Request request) {
  MakePrintable(request);
  return request;
}

}  // namespace

grpc::ServerUnaryReactor* WorkerService::RegisterWorker(grpc::CallbackServerContext* context,
                                                        const v1::RegisterWorkerRequest* request,
                                                        v1::RegisterWorkerResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.WorkerService/RegisterWorker", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  if (absl::Status status = CheckWorker(request->worker()); !status.ok()) {
    return Answer(context, status);
  }
  if (absl::Status status =
          registered_.Register(caller->principal, request->worker().worker_id(), absl::Now());
      !status.ok()) {
    return Answer(context, status);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.RegisterWorker(Printable(*request), caller->principal,
                              AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* WorkerService::AcquireLease(grpc::CallbackServerContext* context,
                                                      const v1::AcquireLeaseRequest* request,
                                                      v1::AcquireLeaseResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.WorkerService/AcquireLease", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  const int64_t seconds = request->wait().seconds();
  const int32_t nanos = request->wait().nanos();
  if (seconds < 0 || nanos < 0 || nanos > 999'999'999 || seconds > kMaxWaitSeconds ||
      (seconds == kMaxWaitSeconds && nanos > 0)) {
    return Answer(context, InvalidField("wait", absl::StrCat("is ", seconds, " s and ", nanos,
                                                             " ns; accepted: 0 to 60 s")));
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  // The context lives until the answer.
  coordinator_.AcquireLease(
      *request, caller->principal, [context] { return context->IsCancelled(); },
      AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* WorkerService::Heartbeat(grpc::CallbackServerContext* context,
                                                   const v1::HeartbeatRequest* request,
                                                   v1::HeartbeatResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.WorkerService/Heartbeat", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.Heartbeat(Printable(*request), caller->principal, AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerUnaryReactor* WorkerService::ReleaseLease(grpc::CallbackServerContext* context,
                                                      const v1::ReleaseLeaseRequest* request,
                                                      v1::ReleaseLeaseResponse* response) {
  const absl::StatusOr<Caller> caller =
      gate_.Admit(*context, "lengthwise.v1.WorkerService/ReleaseLease", *request);
  if (!caller.ok()) return Answer(context, caller.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  coordinator_.ReleaseLease(Printable(*request), caller->principal, AnswerLater(reactor, response));
  return reactor;
}

grpc::ServerBidiReactor<v1::StreamEventsRequest, v1::StreamEventsResponse>*
WorkerService::StreamEvents(grpc::CallbackServerContext* context) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.WorkerService/StreamEvents");
  if (!admission.ok())
    return new RefusedStream<
        grpc::ServerBidiReactor<v1::StreamEventsRequest, v1::StreamEventsResponse>>(
        admission.status());
  // Before the admission is moved, which an argument beside it would not be sure of.
  EventStream* stream = EventStream::Start(coordinator_, streams_, admission->caller.principal);
  return streams_.Keep(stream, *std::move(admission));
}

grpc::ServerReadReactor<v1::UploadArtifactRequest>* WorkerService::UploadArtifact(
    grpc::CallbackServerContext* context, v1::UploadArtifactResponse* response) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.WorkerService/UploadArtifact");
  if (!admission.ok())
    return new RefusedStream<grpc::ServerReadReactor<v1::UploadArtifactRequest>>(
        admission.status());
  ArtifactUpload* upload =
      ArtifactUpload::Start(coordinator_, transfers_.pool, streams_, admission->caller.principal);
  return streams_.Keep(upload, *std::move(admission));
}

grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* WorkerService::DownloadArtifact(
    grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) {
  absl::StatusOr<Gate::Admission> admission =
      gate_.AdmitStream(*context, "lengthwise.v1.WorkerService/DownloadArtifact", *request);
  if (!admission.ok())
    return new RefusedStream<grpc::ServerWriteReactor<v1::DownloadArtifactResponse>>(
        admission.status());
  using Stream = PushStream<v1::DownloadArtifactResponse>;
  auto produce = [this, request = *request,
                  caller = admission->caller.principal](const Stream::Send& send) -> absl::Status {
    absl::Status status = CheckTrialName("trial", request.trial());
    if (status.ok()) status = CheckSha256("sha256", request.sha256());
    if (!status.ok()) return status;
    return coordinator_.ReadArtifact(request, caller, [&](absl::string_view chunk) {
      v1::DownloadArtifactResponse response;
      response.set_data(std::string(chunk));
      return send(std::move(response));
    });
  };
  return streams_.Keep(
      Stream::Start(context, admission->caller, std::move(produce), transfers_, streams_),
      *std::move(admission));
}

}  // namespace lengthwise::server
