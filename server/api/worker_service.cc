// lengthwise.v1.WorkerService, implemented with the core.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "proto/printable_message.h"
#include "proto/worker_service.pb.h"
#include "rpc/status.h"
#include "server/api/answer_stream.h"
#include "server/api/artifact_upload.h"
#include "server/api/services.h"
#include "server/api/validation.h"
#include "server/coordination/event_checks.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

// Maximum `wait` of Synchronize.
constexpr int64_t kMaxWaitSeconds = 60;
constexpr int64_t kMaxSessionBytes = 60;
// Maximum memory of a Synchronize request, and of what the server keeps of it besides the
// description, in bytes. A principal has up to 20,000 workers.
constexpr size_t kMostCallBytes = 1 << 20;
constexpr size_t kMostKeptBytes = 4 << 10;
// A longer reason is cut. It is stored for each trial of the lease.
constexpr size_t kMostReleaseReasonBytes = 4 << 10;

// Takes the request from gRPC, which would keep it until the answer, without unknown fields.
v1::SynchronizeRequest TakeCall(const v1::SynchronizeRequest& request) {
  v1::SynchronizeRequest taken;
  taken.Swap(const_cast<v1::SynchronizeRequest*>(&request));
  taken.DiscardUnknownFields();
  for (v1::ReleasedLease& lease : *taken.mutable_released()) {
    lease.set_reason(std::string(platform::Utf8Prefix(lease.reason(), kMostReleaseReasonBytes)));
  }
  return taken;
}

absl::Status CheckCall(const v1::SynchronizeRequest& call) {
  RETURN_IF_ERROR(CheckWorker(call.worker()));
  size_t kept = call.measurements().SpaceUsedLong();
  for (const v1::HeldLease& lease : call.leases()) kept += lease.SpaceUsedLong();
  if (kept > kMostKeptBytes || call.SpaceUsedLong() > kMostCallBytes) {
    return rpc::InvalidField(
        "call",
        absl::StrCat("needs ", call.SpaceUsedLong(), " bytes, its measurements and leases ", kept,
                     "; accepted: at most ", kMostCallBytes, " and ", kMostKeptBytes));
  }
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

// There are millions of points, which have no text, and walking a message by reflection is
// expensive.
void MakeTextPrintable(v1::StreamEventsRequest& request) {
  for (v1::Event& event : *request.mutable_events()) {
    if (!event.has_training_points()) MakePrintable(event);
  }
}

absl::StatusOr<std::unique_ptr<ArtifactWriter>> OpenArtifact(
    Core& core, const v1::UploadArtifactRequest::Header& header, const std::string& by) {
  RETURN_IF_ERROR(CheckArtifactHeader(header));
  return core.artifacts().Write(header, by);
}

// Stores the artifacts of a batch, each once for a trial: thousands of events may name the same.
// Store refuses the events of one that could not be stored; its upload then tells the worker why.
void StoreArtifacts(Core& core, const v1::StreamEventsRequest& batch, const std::string& by) {
  absl::flat_hash_set<std::pair<absl::string_view, absl::string_view>> done;
  v1::UploadArtifactRequest::Header header;
  header.set_lease_id(batch.lease_id());
  header.set_fencing_token(batch.fencing_token());
  for (const v1::Event& event : batch.events()) {
    const auto artifact = batch.artifacts().find(event.checkpoint().sha256());
    if (artifact == batch.artifacts().end()) continue;
    if (!done.emplace(event.trial(), artifact->first).second) continue;
    header.set_trial(event.trial());
    header.set_sha256(artifact->first);
    header.set_size_bytes(static_cast<int64_t>(artifact->second.size()));
    const auto writer = OpenArtifact(core, header, by);
    if (writer.ok() && (*writer)->Append(artifact->second).ok()) (*writer)->Finish().IgnoreError();
  }
}

}  // namespace

std::unique_ptr<Service> NewWorkerService(Core& core, TransferThreads& downloads,
                                          TransferThreads& uploads, Calls& calls) {
  auto service = std::make_unique<Service>(calls);
  service->ServeBy<v1::SynchronizeRequest, v1::SynchronizeResponse>(
      [&core, &calls](CallContext* context, const auto* request, auto* response) {
        return calls.Serve(
            request->wants_lease() ? Work::kLease : Work::kHeartbeat, context, request, response,
            [&core, &calls, context](const auto& asked, const Caller& caller, auto done) {
              v1::SynchronizeRequest call = TakeCall(asked);
              absl::Status status = CheckCall(call);
              if (!status.ok()) return done(status);
              // Texts are stored and shown to people. They are not refused, because they may come
              // from a library's error while the training is sound.
              MakePrintable(call);
              // gRPC keeps the context alive until the answer. While answers find no room, leases
              // would be made in vain.
              core.loop().Synchronize(
                  std::move(call), caller.principal,
                  [&calls, context, payer = PayerOf(*context, caller)] {
                    AnswerBudget& answers = calls.streams().answers();
                    return context->IsCancelled() ||
                           !answers.CheckRoom(payer, MethodOf<v1::SynchronizeRequest>()).ok();
                  },
                  std::move(done));
            });
      });
  service->Serve<v1::RegisterWorkerRequest, v1::RegisterWorkerResponse>(
      Work::kMemory,
      [](const auto& asked, const Caller&) -> absl::StatusOr<v1::RegisterWorkerResponse> {
        RETURN_IF_ERROR(Leases::CheckVersion(asked.worker()));
        return absl::FailedPreconditionError("workers of this version call Synchronize");
      });
  service->ServeBoth<v1::StreamEventsRequest, v1::StreamEventsResponse>(
      [&core, &uploads, &calls](CallContext* context,
                                Gate::Admission admission) -> absl::StatusOr<EventStream*> {
        // Made before the stream takes the admission.
        std::string payer = PayerOf(*context, admission.caller);
        auto handle = [&core, &uploads, &calls, payer,
                       client = ClientOf(*context, admission.caller), audited = admission.audited,
                       by = admission.caller.principal](v1::StreamEventsRequest request,
                                                        Done<v1::StreamEventsResponse> done) {
          // Even to forget them would keep the command loop.
          if (request.events_size() > kMaxEvents) return done(PartsOf(request).status());
          MakeTextPrintable(request);
          // Only for the audit log: Store checks the lease again and answers with a refusal, and
          // the stream continues.
          if (audited.is_recorded() && !request.events().empty()) {
            const absl::Status status =
                core.lease_ids().Check(request.lease_id(), request.fencing_token(), by);
            if (!status.ok()) audited.Refuse(request.events(0).trial(), status);
          }
          const auto asked = std::make_shared<v1::StreamEventsRequest>(std::move(request));
          auto post = [&core, asked, by, done = std::move(done)] {
            asked->clear_artifacts();
            const auto bytes = static_cast<int64_t>(asked->ByteSizeLong() +
                                                    asked->events().size() * sizeof(v1::Event));
            core.loop().Post<v1::StreamEventsResponse>(
                [&core, asked, by] { return core.intake().Store(*asked, by); }, done, bytes);
          };
          if (asked->artifacts().empty()) return post();
          // Of another payer: they must not leave a fleet without answers.
          auto share =
              calls.streams().answers().Take("checkpoints of " + payer, /*method=*/"", *asked);
          if (!share.ok()) return post();  // the worker uploads them
          // The stream's next batch may overtake this one (StreamEventsRequest.artifacts).
          uploads.pool.Submit(client, [&core, asked, by, share = *std::move(share),
                                       post = std::move(post)]() mutable {
            StoreArtifacts(core, *asked, by);
            share.reset();
            post();
          });
        };
        return EventStream::Start(std::move(handle), std::move(admission), calls.streams(),
                                  std::move(payer), MethodOf<v1::StreamEventsRequest>());
      });
  service->ServeRequests<v1::UploadArtifactRequest, v1::UploadArtifactResponse>(
      [&core, &uploads, &calls](CallContext* context,
                                Gate::Admission admission) -> absl::StatusOr<ArtifactUpload*> {
        const std::string by = admission.caller.principal;
        return ArtifactUpload::Start(
            *context, std::move(admission),
            [&core, by](const v1::UploadArtifactRequest::Header& header) {
              return OpenArtifact(core, header, by);
            },
            uploads, calls.streams());
      });
  service->Push<v1::DownloadArtifactRequest, v1::DownloadArtifactResponse>(
      downloads,
      [&core](const auto& asked,
              const Caller& caller) -> absl::StatusOr<Next<v1::DownloadArtifactResponse>> {
        RETURN_IF_ERROR(ParseTrialName(asked.trial(), "trial").status());
        RETURN_IF_ERROR(CheckSha256("sha256", asked.sha256()));
        ASSIGN_OR_RETURN(auto opened, core.artifacts().Open(asked, caller.principal));
        const std::shared_ptr<ArtifactStore::Reader> bytes = std::move(opened);
        return [bytes]() -> absl::StatusOr<std::optional<v1::DownloadArtifactResponse>> {
          ASSIGN_OR_RETURN(std::string chunk, bytes->Next());
          if (chunk.empty()) return std::nullopt;
          v1::DownloadArtifactResponse response;
          response.set_data(std::move(chunk));
          return response;
        };
      });
  service->Serve<v1::SignTransferRequest, v1::SignTransferResponse>(
      Work::kCheckpoints,
      [&core](const auto& asked, const Caller& caller) -> absl::StatusOr<v1::SignTransferResponse> {
        RETURN_IF_ERROR(ParseTrialName(asked.trial(), "trial").status());
        RETURN_IF_ERROR(CheckSha256("sha256", asked.sha256()));
        if (asked.direction() != v1::SignTransferRequest::PUT &&
            asked.direction() != v1::SignTransferRequest::GET) {
          return rpc::InvalidField(
              "direction", absl::StrCat("is ", asked.direction(), "; accepted: PUT or GET"));
        }
        return core.artifacts().SignTransfer(asked, caller.principal);
      });
  return service;
}

}  // namespace lengthwise::server
