#include "worker/connection/artifact_transfer.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "platform/failpoint.h"
#include "platform/object_store.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "worker/connection/server_calls.h"

namespace lengthwise::worker {
namespace {

// The first part of an upload, small enough for a slow link to take it within the minute that the
// server waits for it.
constexpr size_t kChunkBytes = 256 << 10;
// While a part takes less than a second, the next is larger: after each, the server needs a round
// trip to let more through.
constexpr size_t kMostChunkBytes = 512 << 10;

// Characters of an object store's code or message in an error.
constexpr size_t kMostErrorText = 200;

// Status of an object store's answer that is not a success. 400 means that the bytes differ from
// the signed checksum, so they were damaged on the way. Quotes only code and message of the body:
// the rest, or a proxy's page, may show the signed URL, which is a secret.
absl::Status ErrorOf(absl::string_view what, absl::string_view url,
                     const platform::HttpResponse& response) {
  std::string text = absl::StrCat("the object store answers ", response.status, " to the ", what,
                                  " ", platform::WithoutQuery(url));
  const platform::ObjectStoreError error = platform::ObjectStoreErrorOf(response);
  for (const std::string& part : {error.code, error.message}) {
    if (!part.empty()) absl::StrAppend(&text, ": ", part.substr(0, kMostErrorText));
  }
  return response.status == 400 ? absl::DataLossError(text) : absl::UnavailableError(text);
}

std::map<std::string, std::string> HeadersOf(const v1::SignTransferResponse& transfer) {
  return {transfer.headers().begin(), transfer.headers().end()};
}

}  // namespace

absl::StatusOr<v1::SignTransferResponse> ObjectTransfers::Sign(
    v1::WorkerService::StubInterface& stub, CallGroup& calls,
    const v1::SignTransferRequest& request) {
  CallGroup::Call call(calls, platform::TransferTimeout(0));
  v1::SignTransferResponse response;
  const absl::Status status = ToStatus(stub.SignTransfer(call.context(), request, &response));
  if (status.ok()) return response;
  if (absl::IsUnimplemented(status)) {
    platform::MutexLock lock(mutex_);
    http_ = nullptr;
    ask_ = After(kAskAgain);
  }
  return status;
}

bool ObjectTransfers::are_unavailable() {
  platform::MutexLock lock(mutex_);
  return http_ == nullptr && std::chrono::steady_clock::now() < ask_;
}

absl::StatusOr<std::shared_ptr<platform::HttpClient>> ObjectTransfers::Client() {
  platform::MutexLock lock(mutex_);
  if (http_ == nullptr && std::chrono::steady_clock::now() >= ask_) {
    ask_ = kNever;
    absl::StatusOr<std::unique_ptr<platform::HttpClient>> http = platform::HttpClient::Create();
    if (http.ok()) http_ = *std::move(http);
  }
  if (http_ != nullptr) return http_;
  return absl::UnimplementedError("artifacts go through the server");
}

absl::Status ObjectTransfers::Put(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                                  const v1::UploadArtifactRequest::Header& header,
                                  absl::string_view bytes, const std::function<void()>& progress) {
  ASSIGN_OR_RETURN(const std::shared_ptr<platform::HttpClient> http, Client());
  v1::SignTransferRequest request;
  request.set_lease_id(header.lease_id());
  request.set_fencing_token(header.fencing_token());
  request.set_trial(header.trial());
  request.set_sha256(header.sha256());
  request.set_size_bytes(header.size_bytes());
  request.set_direction(v1::SignTransferRequest::PUT);
  ASSIGN_OR_RETURN(v1::SignTransferResponse transfer, Sign(stub, calls, request));
  if (transfer.stored()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const platform::HttpResponse response,
                   http->Send({.method = "PUT",
                               .url = transfer.url(),
                               .headers = HeadersOf(transfer),
                               .body = bytes,
                               .timeout = absl::InfiniteDuration(),
                               .take = nullptr,
                               .is_cancelled = [&calls] { return calls.is_cancelled(); },
                               .progress = progress}));
  LENGTHWISE_FAILPOINT("object.put.after");
  // 412: the store has the artifact, from an earlier try.
  if (!response.ok() && response.status != 412) return ErrorOf("PUT of", transfer.url(), response);
  progress();
  // The artifact is durable only once the server itself has found it, and its event must not be
  // sent earlier.
  ASSIGN_OR_RETURN(transfer, Sign(stub, calls, request));
  if (transfer.stored()) return absl::OkStatus();
  return absl::UnavailableError("the server does not find the checkpoint that the store took");
}

absl::StatusOr<std::string> ObjectTransfers::Get(v1::WorkerService::StubInterface& stub,
                                                 CallGroup& calls,
                                                 const v1::DownloadArtifactRequest& asked,
                                                 int64_t size_bytes) {
  ASSIGN_OR_RETURN(const std::shared_ptr<platform::HttpClient> http, Client());
  v1::SignTransferRequest request;
  request.set_lease_id(asked.lease_id());
  request.set_fencing_token(asked.fencing_token());
  request.set_trial(asked.trial());
  request.set_sha256(asked.sha256());
  request.set_direction(v1::SignTransferRequest::GET);
  ASSIGN_OR_RETURN(const v1::SignTransferResponse transfer, Sign(stub, calls, request));
  std::string bytes;
  bytes.reserve(static_cast<size_t>(std::max<int64_t>(0, size_bytes)));
  platform::Sha256 hash;
  // UNIMPLEMENTED makes the caller ask the server, which only then learns that its store lost or
  // damaged the artifact.
  const absl::Status damaged = absl::UnimplementedError("the bytes from the store are damaged");
  const absl::StatusOr<platform::HttpResponse> response =
      http->Send({.method = "GET",
                  .url = transfer.url(),
                  .headers = HeadersOf(transfer),
                  .timeout = absl::InfiniteDuration(),
                  .take =
                      [&](absl::string_view part) {
                        // A store that sends without end must not fill the memory.
                        if (bytes.size() + part.size() > static_cast<size_t>(size_bytes))
                          return damaged;
                        hash.Update(part);
                        absl::StrAppend(&bytes, part);
                        return absl::OkStatus();
                      },
                  .is_cancelled = [&calls] { return calls.is_cancelled(); },
                  .progress = nullptr});
  RETURN_IF_ERROR(response.status());
  if (response->status == 404) return damaged;
  if (!response->ok()) return ErrorOf("GET of", transfer.url(), *response);
  if (static_cast<int64_t>(bytes.size()) != size_bytes || hash.Finish() != asked.sha256()) {
    return damaged;
  }
  return bytes;
}

absl::Status UploadArtifact(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                            const v1::UploadArtifactRequest::Header& header,
                            absl::string_view bytes, const std::function<void()>& progress) {
  // After the last bytes, the server makes all of them durable.
  const absl::Duration patience = platform::TransferTimeout(static_cast<int64_t>(bytes.size()));
  CallGroup::Call call(calls);
  StallGuard guard(*call.context(), patience);
  // The call's start leaves with its first bytes, and so do the last bytes and the end: a small
  // checkpoint is one packet.
  call.context()->set_initial_metadata_corked(true);
  v1::UploadArtifactResponse response;
  const std::unique_ptr<grpc::ClientWriterInterface<v1::UploadArtifactRequest>> writer =
      stub.UploadArtifact(call.context(), &response);
  v1::UploadArtifactRequest request;
  *request.mutable_header() = header;
  size_t sent = 0, chunk = kChunkBytes;
  do {  // without bytes, too: the call would not even start, and the server could not refuse it
    const auto start = std::chrono::steady_clock::now();
    request.set_data(std::string(bytes.substr(sent, chunk)));
    sent += chunk;
    grpc::WriteOptions options;
    if (sent >= bytes.size()) options.set_last_message();
    // A write fails when the call is over; Finish then says why.
    if (!writer->Write(request, options)) break;
    request.clear_header();
    guard.NoteProgress();
    progress();
    const bool is_fast = std::chrono::steady_clock::now() - start < std::chrono::seconds(1);
    chunk = is_fast ? std::min(2 * chunk, kMostChunkBytes) : kChunkBytes;
  } while (sent < bytes.size());
  return guard.Explain(ToStatus(writer->Finish()));
}

absl::Status DownloadArtifactInChunks(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                                      const v1::DownloadArtifactRequest& request,
                                      int64_t size_bytes,
                                      const std::function<absl::Status(absl::string_view)>& take) {
  CallGroup::Call call(calls);
  StallGuard guard(*call.context(), platform::TransferTimeout(size_bytes));
  const std::unique_ptr<grpc::ClientReaderInterface<v1::DownloadArtifactResponse>> reader =
      stub.DownloadArtifact(call.context(), request);
  int64_t bytes = 0;
  absl::Status taken;
  platform::Sha256 hash;
  v1::DownloadArtifactResponse response;
  while (reader->Read(&response)) {
    guard.NoteProgress();
    bytes += static_cast<int64_t>(response.data().size());
    // A server that sends without end must not fill the memory or the disk.
    if (bytes <= size_bytes && taken.ok()) {
      hash.Update(response.data());
      taken = take(response.data());
    }
    if (bytes > size_bytes || !taken.ok()) call.context()->TryCancel();
  }
  const absl::Status status = guard.Explain(ToStatus(reader->Finish()));
  if (!taken.ok()) return taken;
  if (bytes > size_bytes) {
    return absl::DataLossError(
        absl::StrCat("artifact ", request.sha256(), " is larger than its ", size_bytes, " bytes"));
  }
  RETURN_IF_ERROR(status);
  if (bytes != size_bytes || hash.Finish() != request.sha256()) {
    return absl::DataLossError(absl::StrCat("artifact ", request.sha256(), " came damaged: ", bytes,
                                            " of ", size_bytes, " bytes, or another checksum"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DownloadArtifact(v1::WorkerService::StubInterface& stub,
                                             CallGroup& calls,
                                             const v1::DownloadArtifactRequest& request,
                                             int64_t size_bytes) {
  std::string bytes;
  // At once: a string that grows would take up to twice the room of a large checkpoint.
  bytes.reserve(static_cast<size_t>(std::max<int64_t>(0, size_bytes)));
  RETURN_IF_ERROR(
      DownloadArtifactInChunks(stub, calls, request, size_bytes, [&bytes](absl::string_view chunk) {
        bytes.append(chunk.data(), chunk.size());
        return absl::OkStatus();
      }));
  return bytes;
}

}  // namespace lengthwise::worker
