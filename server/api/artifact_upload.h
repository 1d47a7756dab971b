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
#include "absl/strings/str_cat.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "platform/status_macros.h"
#include "proto/experiment_service.pb.h"
#include "proto/worker_service.pb.h"
#include "rpc/status.h"
#include "server/api/open_streams.h"
#include "server/api/push_stream.h"
#include "server/api/validation.h"
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
                       OpenWriter open, TransferThreads& threads, OpenStreams& streams) {
    std::shared_ptr<Upload> upload(
        new Upload(context, std::move(admission), std::move(open), threads, streams));
    upload->Own();
    threads.Begin(upload->client_, [upload] { upload->Read(); });
    return upload.get();
  }

  void Stop(const absl::Status& reason) override { this->Break(reason); }
  void StopStalled() override {
    this->BreakStalled("sent nothing of its upload", "upload again, and send continuously");
  }

  // Called by gRPC.
  void OnReadDone(bool ok) override {
    if (ok) {
      const auto bytes = static_cast<int64_t>(request_.SpaceUsedLong());
      share_ = this->streams_.answers().TakeSize(this->payer_, /*method=*/"", bytes, /*copies=*/0);
      this->admission_.audited.SetRequest(request_);
    }
    this->EndOperation([self = this->shared_from_this(), ok] { self->Take(ok); });
  }

 private:
  Upload(grpc::CallbackServerContext& context, Gate::Admission admission, OpenWriter open,
         TransferThreads& threads, OpenStreams& streams)
      : TransferStream<Upload, grpc::ServerReadReactor<Request>>(context, std::move(admission),
                                                                 threads, streams),
        open_(std::move(open)) {}

  void Read() {
    if (const absl::Status stopped = this->BeginOperation(); !stopped.ok()) {
      return FinishWith(stopped);
    }
    this->StartRead(&request_);
  }

  // On the pool: processes `request_`, or the end of the client's messages if `!ok`.
  void Take(bool ok) {
    if (const absl::Status stopped = this->stopped(); !stopped.ok()) return FinishWith(stopped);
    if (!ok) return FinishWith(TakeEnd());
    // Not RESOURCE_EXHAUSTED, which says that the artifact is too large.
    if (!share_.ok()) return FinishWith(absl::UnavailableError(share_.status().message()));
    if (const absl::Status status = TakeMessage(); !status.ok()) return FinishWith(status);
    share_ = nullptr;
    Read();
  }

  absl::Status TakeMessage() {
    const auto size = static_cast<int64_t>(request_.data().size());
    if (request_.has_header()) {
      if (writer_ != nullptr) {
        return rpc::InvalidField("header", "comes twice; accepted: first only");
      }
      ASSIGN_OR_RETURN(writer_, open_(request_.header()));
      expected_bytes_ = request_.header().size_bytes();
      if (size == 0) return absl::OkStatus();
    }
    if (writer_ == nullptr) return rpc::InvalidField("header", "is absent; accepted: header first");
    if (size == 0) return rpc::InvalidField("data", "is empty; accepted: 1 byte or more");
    if (size > kMaxChunkBytes) {
      return rpc::InvalidField("data", absl::StrCat("is ", size, " bytes; accepted: at most ",
                                                    kMaxChunkBytes, " bytes (1 MiB)"));
    }
    // Before the bytes are written, so that a client stores no more than it announced.
    received_bytes_ += size;
    if (received_bytes_ > expected_bytes_) {
      return absl::DataLossError(
          absl::StrCat("the data goes beyond the header's size_bytes, ", expected_bytes_));
    }
    return writer_->Append(request_.data());
  }

  // In artifact_upload.cc, which //tests/faults compiles again.
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
