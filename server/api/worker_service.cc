// lengthwise.v1.WorkerService, implemented with the core.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "platform/status_macros.h"
#include "proto/printable_message.h"
#include "proto/worker_service.grpc.pb.h"
#include "rpc/status.h"
#include "server/api/artifact_upload.h"
#include "server/api/event_stream.h"
#include "server/api/services.h"
#include "server/api/validation.h"

namespace lengthwise::server {
namespace {

// Maximum `wait` of Synchronize.
constexpr int64_t kMaxWaitSeconds = 60;
constexpr int64_t kMaxSessionBytes = 60;

// Escapes control characters in a worker's texts, which are stored and shown to people. They are
// not refused, because they may come from a library's error while the training is sound.
template <typename Request>
Request Printable(Request request) {
  MakePrintable(request);
  return request;
}

absl::Status CheckCall(const v1::SynchronizeRequest& call) {
  RETURN_IF_ERROR(CheckWorker(call.worker()));
  RETURN_IF_ERROR(CheckText("session", call.session(), kMaxSessionBytes));
  const int64_t seconds = call.wait().seconds();
  const int32_t nanos = call.wait().nanos();
  if (seconds >= 0 && nanos >= 0 && nanos <= 999'999'999 &&
      (seconds < kMaxWaitSeconds || (seconds == kMaxWaitSeconds && nanos == 0))) {
    return absl::OkStatus();
  }
  return rpc::InvalidField(
      "wait", absl::StrCat("is ", seconds, " s and ", nanos, " ns; accepted: 0 to 60 s"));
}

class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  WorkerService(Core& core, TransferThreads& downloads, TransferThreads& uploads,
                OpenStreams& streams, Calls& calls)
      : core_(core), downloads_(downloads), uploads_(uploads), streams_(streams), calls_(calls) {}

  UnaryReactor* Synchronize(CallContext* context, const v1::SynchronizeRequest* request,
                            v1::SynchronizeResponse* response) override {
    return calls_.Serve(Work::kMemory, context, request, response,
                        [this, context](const auto& asked, const Caller& caller, auto done) {
                          absl::Status status = CheckCall(asked);
                          if (!status.ok()) return done(status);
                          // gRPC keeps the context alive until the answer.
                          core_.loop().Synchronize(
                              Printable(asked), caller.principal,
                              [context] { return context->IsCancelled(); }, std::move(done));
                        });
  }

  UnaryReactor* RegisterWorker(CallContext* context, const v1::RegisterWorkerRequest* request,
                               v1::RegisterWorkerResponse* response) override {
    return calls_.Serve(
        Work::kMemory, context, request, response,
        [](const auto& asked, const Caller&) -> absl::StatusOr<v1::RegisterWorkerResponse> {
          RETURN_IF_ERROR(Leases::CheckVersion(asked.worker()));
          return absl::FailedPreconditionError("workers of this version call Synchronize");
        });
  }

  grpc::ServerBidiReactor<v1::StreamEventsRequest, v1::StreamEventsResponse>* StreamEvents(
      CallContext* context) override {
    constexpr absl::string_view kMethod = "lengthwise.v1.WorkerService/StreamEvents";
    return calls_.Open<grpc::ServerBidiReactor<v1::StreamEventsRequest, v1::StreamEventsResponse>>(
        kMethod, context, nullptr,
        [this, context, kMethod](const Caller& caller) -> absl::StatusOr<EventStream*> {
          return EventStream::Start(
              [this, context, kMethod](v1::StreamEventsRequest asked, std::string by,
                                       Done<v1::StreamEventsResponse> done) {
                // Only for the audit log: Store checks the lease again and answers with a refusal,
                // and the stream continues.
                if (!asked.events().empty()) {
                  const absl::Status status =
                      core_.lease_ids().Check(asked.lease_id(), asked.fencing_token(), by);
                  if (!status.ok()) {
                    calls_.Refuse(*context, kMethod, asked.events(0).trial(), status);
                  }
                }
                const int64_t bytes = static_cast<int64_t>(asked.ByteSizeLong());
                core_.loop().Post<v1::StreamEventsResponse>(
                    [this, asked = std::move(asked), by = std::move(by)] {
                      return core_.intake().Store(asked, by);
                    },
                    std::move(done), bytes);
              },
              streams_, caller.principal);
        });
  }

  grpc::ServerReadReactor<v1::UploadArtifactRequest>* UploadArtifact(
      CallContext* context, v1::UploadArtifactResponse* response) override {
    return calls_.Open<grpc::ServerReadReactor<v1::UploadArtifactRequest>>(
        "lengthwise.v1.WorkerService/UploadArtifact", context, nullptr,
        [this, context](const Caller& caller) -> absl::StatusOr<ArtifactUpload*> {
          return ArtifactUpload::Start(
              *context, caller,
              [this, by = caller.principal](const v1::UploadArtifactRequest::Header& header)
                  -> absl::StatusOr<std::unique_ptr<ArtifactWriter>> {
                RETURN_IF_ERROR(CheckArtifactHeader(header));
                return core_.artifacts().Write(header, by);
              },
              uploads_, streams_);
        });
  }

  grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* DownloadArtifact(
      CallContext* context, const v1::DownloadArtifactRequest* request) override {
    return calls_.Push<v1::DownloadArtifactResponse>(
        downloads_, context, request,
        [this](const auto& asked,
               const Caller& caller) -> absl::StatusOr<Next<v1::DownloadArtifactResponse>> {
          RETURN_IF_ERROR(CheckTrialName("trial", asked.trial()));
          RETURN_IF_ERROR(CheckSha256("sha256", asked.sha256()));
          ASSIGN_OR_RETURN(auto opened, core_.artifacts().Open(asked, caller.principal));
          const std::shared_ptr<ArtifactStore::Reader> bytes = std::move(opened);
          return [bytes]() -> absl::StatusOr<std::optional<v1::DownloadArtifactResponse>> {
            ASSIGN_OR_RETURN(std::string chunk, bytes->Next());
            if (chunk.empty()) return std::nullopt;
            v1::DownloadArtifactResponse response;
            response.set_data(std::move(chunk));
            return response;
          };
        });
  }

  UnaryReactor* SignTransfer(CallContext* context, const v1::SignTransferRequest* request,
                             v1::SignTransferResponse* response) override {
    return calls_.Serve(Work::kCheckpoints, context, request, response,
                        [this](const auto& asked,
                               const Caller& caller) -> absl::StatusOr<v1::SignTransferResponse> {
                          RETURN_IF_ERROR(CheckTrialName("trial", asked.trial()));
                          RETURN_IF_ERROR(CheckSha256("sha256", asked.sha256()));
                          if (asked.direction() != v1::SignTransferRequest::PUT &&
                              asked.direction() != v1::SignTransferRequest::GET) {
                            return rpc::InvalidField(
                                "direction",
                                absl::StrCat("is ", asked.direction(), "; accepted: PUT or GET"));
                          }
                          return core_.artifacts().SignTransfer(asked, caller.principal);
                        });
  }

 private:
  Core& core_;
  TransferThreads& downloads_;
  TransferThreads& uploads_;
  OpenStreams& streams_;
  Calls& calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewWorkerService(Core& core, TransferThreads& downloads,
                                                TransferThreads& uploads, OpenStreams& streams,
                                                Calls& calls) {
  return std::make_unique<WorkerService>(core, downloads, uploads, streams, calls);
}

}  // namespace lengthwise::server
