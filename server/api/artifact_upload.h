// Upload: one client's UploadArtifact or UploadData. Messages are read one at a time. Each is
// checked and written on the pool, because writing, and above all making durable, waits for the
// disk.
#ifndef LENGTHWISE_SERVER_API_ARTIFACT_UPLOAD_H_
#define LENGTHWISE_SERVER_API_ARTIFACT_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "proto/experiment_service.pb.h"
#include "proto/worker_service.pb.h"
#include "server/api/open_streams.h"
#include "server/api/push_stream.h"
#include "server/coordination/artifacts.h"
#include "server/security/gate.h"

namespace lengthwise::server {

// A `Request` is a `header`, which comes first and holds size and SHA-256 of the whole, or `data`.
template <typename Request>
class Upload final : public TransferStream<Upload<Request>, grpc::ServerReadReactor<Request>> {
 public:
  // Checks the header and opens the writer for the data.
  using OpenWriter = std::function<absl::StatusOr<std::unique_ptr<ArtifactWriter>>(
      const typename Request::Header&)>;

  // Reads nothing before its turn among the client's streams (TransferThreads::Begin). `threads`,
  // `streams` and everything `open` uses must outlive the stream.
  static Upload* Start(grpc::CallbackServerContext& context, Gate::Admission admission,
                       OpenWriter open, TransferThreads& threads, OpenStreams& streams);

  void Stop(const absl::Status& reason) override { this->Break(reason); }
  void StopStalled() override {
    this->BreakStalled("sent nothing of its upload", "upload again, and send continuously");
  }

  // Called by gRPC.
  void OnReadDone(bool ok) override;

 private:
  Upload(grpc::CallbackServerContext& context, Gate::Admission admission, OpenWriter open,
         TransferThreads& threads, OpenStreams& streams)
      : TransferStream<Upload, grpc::ServerReadReactor<Request>>(context, std::move(admission),
                                                                 threads, streams),
        open_(std::move(open)) {}

  void Read();
  // On the pool: processes `request_`, or the end of the client's messages if `!ok`.
  void Take(bool ok);
  absl::Status TakeMessage();
  absl::Status TakeEnd();
  void FinishWith(const absl::Status& status);

  const OpenWriter open_;
  // Used by Take only. request_ belongs to gRPC while a read is outstanding.
  Request request_;
  absl::StatusOr<AnswerBudget::Share> share_;  // of request_, which may wait for a thread
  std::unique_ptr<ArtifactWriter> writer_;
  int64_t expected_bytes_ = 0;
  int64_t received_bytes_ = 0;
};

using ArtifactUpload = Upload<v1::UploadArtifactRequest>;
using DataUpload = Upload<v1::UploadDataRequest>;

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_ARTIFACT_UPLOAD_H_
