#include "server/api/artifact_upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"
#include "rpc/status.h"
#include "server/api/validation.h"

namespace lengthwise::server {

template <typename Request>
Upload<Request>* Upload<Request>::Start(grpc::CallbackServerContext& context,
                                        Gate::Admission admission, OpenWriter open,
                                        TransferThreads& threads, OpenStreams& streams) {
  std::shared_ptr<Upload> upload(
      new Upload(context, std::move(admission), std::move(open), threads, streams));
  upload->Own();
  threads.Begin(upload->client_, [upload] { upload->Read(); });
  return upload.get();
}

template <typename Request>
void Upload<Request>::Read() {
  if (const absl::Status stopped = this->BeginOperation(); !stopped.ok()) {
    return FinishWith(stopped);
  }
  this->StartRead(&request_);
}

template <typename Request>
void Upload<Request>::OnReadDone(bool ok) {
  if (ok) {
    const auto bytes = static_cast<int64_t>(request_.SpaceUsedLong());
    share_ = this->streams_.answers().TakeSize(this->payer_, /*method=*/"", bytes, /*copies=*/0);
    this->admission_.audited.SetRequest(request_);
  }
  this->EndOperation([self = this->shared_from_this(), ok] { self->Take(ok); });
}

template <typename Request>
void Upload<Request>::Take(bool ok) {
  if (const absl::Status stopped = this->stopped(); !stopped.ok()) return FinishWith(stopped);
  if (!ok) return FinishWith(TakeEnd());
  // Not RESOURCE_EXHAUSTED, which says that the artifact is too large.
  if (!share_.ok()) return FinishWith(absl::UnavailableError(share_.status().message()));
  if (const absl::Status status = TakeMessage(); !status.ok()) return FinishWith(status);
  share_ = nullptr;
  Read();
}

template <typename Request>
absl::Status Upload<Request>::TakeMessage() {
  const auto size = static_cast<int64_t>(request_.data().size());
  if (request_.has_header()) {
    if (writer_ != nullptr) return rpc::InvalidField("header", "comes twice; accepted: first only");
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

template <typename Request>
absl::Status Upload<Request>::TakeEnd() {
  if (writer_ == nullptr) return rpc::InvalidField("header", "is absent; accepted: header first");
  if (received_bytes_ != expected_bytes_) {
    return absl::DataLossError(absl::StrCat("the data has ", received_bytes_,
                                            " bytes, the header says ", expected_bytes_));
  }
  LENGTHWISE_FAILPOINT("upload.finish.before");
  return writer_->Finish();
}

template <typename Request>
void Upload<Request>::FinishWith(const absl::Status& status) {
  LENGTHWISE_FAILPOINT("upload.answer.before");
  writer_.reset();  // here, not on gRPC's thread, because it may touch the disk
  this->EndTransfer(status);
}

template class Upload<v1::UploadArtifactRequest>;
template class Upload<v1::UploadDataRequest>;

}  // namespace lengthwise::server
