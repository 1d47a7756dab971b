#include "worker/connection/artifact_transfer.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "worker/connection/server_channel.h"

namespace lengthwise::worker {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

// Half a minute for the call itself, and a second for each MiB.
absl::Duration TransferTimeout(int64_t bytes) {
  return absl::Seconds(30) + absl::Seconds(1) * (static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

absl::Status UploadArtifact(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                            const v1::UploadArtifactRequest::Header& header,
                            absl::string_view bytes, const std::function<void()>& progress) {
  CallGroup::Call call(calls, TransferTimeout(static_cast<int64_t>(bytes.size())));
  v1::UploadArtifactResponse response;
  const std::unique_ptr<grpc::ClientWriterInterface<v1::UploadArtifactRequest>> writer =
      stub.UploadArtifact(call.context(), &response);
  v1::UploadArtifactRequest request;
  *request.mutable_header() = header;
  // A write fails when the call is over; Finish then says why.
  bool writable = writer->Write(request);
  for (size_t offset = 0; writable && offset < bytes.size(); offset += kChunkBytes) {
    request.set_data(std::string(bytes.substr(offset, kChunkBytes)));
    writable = writer->Write(request);
    if (writable) progress();
  }
  if (writable) writer->WritesDone();
  return ToStatus(writer->Finish());
}

absl::Status DownloadArtifactInChunks(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                                      const v1::DownloadArtifactRequest& request,
                                      int64_t size_bytes,
                                      const std::function<absl::Status(absl::string_view)>& take) {
  CallGroup::Call call(calls, TransferTimeout(size_bytes));
  const std::unique_ptr<grpc::ClientReaderInterface<v1::DownloadArtifactResponse>> reader =
      stub.DownloadArtifact(call.context(), request);
  int64_t bytes = 0;
  absl::Status taken;
  platform::Sha256 hash;
  v1::DownloadArtifactResponse response;
  while (reader->Read(&response)) {
    bytes += static_cast<int64_t>(response.data().size());
    // A server that sends without end must not fill the memory or the disk.
    if (bytes <= size_bytes && taken.ok()) {
      hash.Update(response.data());
      taken = take(response.data());
    }
    if (bytes > size_bytes || !taken.ok()) call.context()->TryCancel();
  }
  const absl::Status status = ToStatus(reader->Finish());
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
  const absl::Status status =
      DownloadArtifactInChunks(stub, calls, request, size_bytes, [&bytes](absl::string_view chunk) {
        bytes.append(chunk.data(), chunk.size());
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace lengthwise::worker
