// One worker's UploadArtifact. Messages are read one at a time; each is checked and written on the
// pool, since writing (and above all making durable) waits for the disk.
#ifndef LENGTHWISE_SERVER_SERVICES_ARTIFACT_UPLOAD_H_
#define LENGTHWISE_SERVER_SERVICES_ARTIFACT_UPLOAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "platform/mutex.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/artifacts.h"
#include "server/services/open_streams.h"
#include "server/services/work_pool.h"

namespace lengthwise::server {

class ArtifactUpload final : public grpc::ServerReadReactor<v1::UploadArtifactRequest>,
                             public StoppableStream,
                             public std::enable_shared_from_this<ArtifactUpload> {
 public:
  // All three outlive the stream. `caller` is the principal that opened it.
  static ArtifactUpload* Start(Artifacts& artifacts, WorkPool& pool, OpenStreams& streams,
                               std::string caller);

  void Stop(const absl::Status& reason) override;

  // From gRPC.
  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // A read is about to be started, is outstanding, its message is taken; all is over.
  enum class Phase { kStarting, kReading, kTaking, kFinished };

  ArtifactUpload(Artifacts& artifacts, WorkPool& pool, OpenStreams& streams, std::string caller)
      : artifacts_(artifacts), pool_(pool), streams_(streams), caller_(std::move(caller)) {}

  void Read();
  // On the pool: takes `request_`, or the end of the client's messages when `!ok`.
  void Take(bool ok);
  absl::Status TakeMessage();
  absl::Status TakeEnd();
  void FinishWith(const absl::Status& status);
  // Why the stream ends before its time; OK while it need not.
  absl::Status Interruption() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Artifacts& artifacts_;
  WorkPool& pool_;
  OpenStreams& streams_;
  const std::string caller_;
  std::shared_ptr<ArtifactUpload> self_;  // gRPC's ownership; released by OnDone

  // Touched by Take alone, but for request_, which is gRPC's while reading.
  v1::UploadArtifactRequest request_;
  std::unique_ptr<ArtifactWriter> writer_;
  int64_t expected_bytes_ = 0;
  int64_t received_bytes_ = 0;

  platform::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kTaking;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // why; OK while it is not
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_ARTIFACT_UPLOAD_H_
