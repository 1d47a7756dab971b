// Moves checkpoints and data files between worker and server, or its object store.
#ifndef LENGTHWISE_WORKER_CONNECTION_ARTIFACT_TRANSFER_H_
#define LENGTHWISE_WORKER_CONNECTION_ARTIFACT_TRANSFER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/http_client.h"
#include "platform/mutex.h"
#include "proto/worker_service.grpc.pb.h"
#include "proto/worker_service.pb.h"
#include "worker/connection/backoff.h"
#include "worker/connection/server_calls.h"

namespace lengthwise::worker {

// Moves checkpoints to and from an object store, by requests that the server signs. A server that
// has none is asked again after kAskAgain, because a restart may give it one; never if this machine
// lacks libcurl. Thread-safe.
class ObjectTransfers {
 public:
  static constexpr absl::Duration kAskAgain = absl::Minutes(1);

  // As UploadArtifact. UNIMPLEMENTED if the bytes must go through the server.
  absl::Status Put(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                   const v1::UploadArtifactRequest::Header& header, absl::string_view bytes,
                   const std::function<void()>& progress);
  // As DownloadArtifact. UNIMPLEMENTED if the bytes must come through the server, which then also
  // learns that the object store has lost or damaged them.
  absl::StatusOr<std::string> Get(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                                  const v1::DownloadArtifactRequest& request, int64_t size_bytes);
  // True if the server is known to have no object store, until it is asked again.
  bool are_unavailable();

 private:
  absl::StatusOr<v1::SignTransferResponse> Sign(v1::WorkerService::StubInterface& stub,
                                                CallGroup& calls,
                                                const v1::SignTransferRequest& request);
  // UNIMPLEMENTED if bytes go through the server.
  absl::StatusOr<std::shared_ptr<platform::HttpClient>> Client();

  platform::Mutex mutex_;
  // When to ask the server, if `http_` is null.
  TimePoint ask_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  // Null: bytes go through the server.
  std::shared_ptr<platform::HttpClient> http_ ABSL_GUARDED_BY(mutex_);
};

// Stores `bytes` as the artifact of `header` (whose size and checksum must be theirs). One try; the
// errors are those of WorkerService.UploadArtifact, and DEADLINE_EXCEEDED once nothing has moved
// for platform::TransferTimeout of the whole.
// `progress` is called after each part that the connection took. Blocks.
absl::Status UploadArtifact(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                            const v1::UploadArtifactRequest::Header& header,
                            absl::string_view bytes, const std::function<void()>& progress);

// Passes the bytes of an artifact of `size_bytes` to `take`, in order. An error of `take` ends the
// transfer and is returned. Otherwise as DownloadArtifact. An error, including DATA_LOSS, may come
// after `take` got all bytes.
absl::Status DownloadArtifactInChunks(v1::WorkerService::StubInterface& stub, CallGroup& calls,
                                      const v1::DownloadArtifactRequest& request,
                                      int64_t size_bytes,
                                      const std::function<absl::Status(absl::string_view)>& take);

// Fetches an artifact of `size_bytes`. One try; the errors are those of
// WorkerService.DownloadArtifact, DEADLINE_EXCEEDED as above, and DATA_LOSS when what came has
// another size or checksum.
// Blocks.
absl::StatusOr<std::string> DownloadArtifact(v1::WorkerService::StubInterface& stub,
                                             CallGroup& calls,
                                             const v1::DownloadArtifactRequest& request,
                                             int64_t size_bytes);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_ARTIFACT_TRANSFER_H_
