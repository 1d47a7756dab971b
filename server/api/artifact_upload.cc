#include "server/api/artifact_upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"
#include "rpc/status.h"
#include "server/api/validation.h"

namespace lengthwise::server {

template <typename Request>
Upload<Request>* Upload<Request>::Start(const grpc::CallbackServerContext& context,
                                        const Caller& caller, OpenWriter open,
                                        TransferThreads& threads, OpenStreams& streams) {
  std::shared_ptr<Upload> upload(new Upload(ClientOf(context, caller), PayerOf(context, caller),
                                            std::move(open), threads, streams));
  upload->Own();
  threads.Begin(upload->client_, [upload] { upload->Read(); });
  return upload.get();
}

template <typename Request>
void Upload<Request>::Stop(const absl::Status& reason) {
  absl::Status status;
  {
    platform::MutexLock lock(mutex_);
    if (stopped_.ok()) stopped_ = reason;
    if (phase_ != Phase::kReading) return;  // the thread that processes the message will see it
    phase_ = Phase::kFinished;
    status = stopped_;
  }
  this->Finish(rpc::ToGrpcStatus(status));
}

template <typename Request>
void Upload<Request>::OnCancel() {
  platform::MutexLock lock(mutex_);
  // An outstanding read has ended as well.
  if (stopped_.ok()) stopped_ = absl::CancelledError("the client cancelled the call");
}

template <typename Request>
void Upload<Request>::OnDone() {
  threads_.End(client_);
  OwnedStream<Upload, grpc::ServerReadReactor<Request>>::OnDone();
}

template <typename Request>
void Upload<Request>::Read() {
  absl::Status interruption;
  {
    platform::MutexLock lock(mutex_);
    interruption = stopped_;
    // In kStarting, Stop leaves the end to this function: after a Finish, gRPC may call OnDone
    // before the read has started.
    phase_ = interruption.ok() ? Phase::kStarting : Phase::kFinished;
    read_began_ = std::chrono::steady_clock::now();
  }
  if (!interruption.ok()) return this->Finish(rpc::ToGrpcStatus(interruption));
  this->StartRead(&request_);
  {
    platform::MutexLock lock(mutex_);
    if (phase_ != Phase::kStarting) return;  // the message has arrived already
    phase_ = stopped_.ok() ? Phase::kReading : Phase::kFinished;
    if (phase_ == Phase::kReading) return;
    interruption = stopped_;
  }
  this->Finish(rpc::ToGrpcStatus(interruption));
}

template <typename Request>
void Upload<Request>::StopStalled() {
  {
    platform::MutexLock lock(mutex_);
    const bool reading = phase_ == Phase::kStarting || phase_ == Phase::kReading;
    const auto lasts = absl::FromChrono(std::chrono::steady_clock::now() - read_began_);
    if (!reading || lasts < threads_.patience) return;
  }
  Stop(absl::DeadlineExceededError(absl::StrCat("the client sent nothing of its upload for ",
                                                absl::FormatDuration(threads_.patience),
                                                "; upload again, and send continuously")));
}

template <typename Request>
void Upload<Request>::OnReadDone(bool ok) {
  platform::MutexLock lock(mutex_);
  if (phase_ == Phase::kFinished) return;
  phase_ = Phase::kTaking;
  if (ok) share_ = this->streams_.answers().Take(payer_, /*method=*/"", request_);
  threads_.pool.Submit(client_, [self = this->shared_from_this(), ok] { self->Take(ok); });
}

template <typename Request>
void Upload<Request>::Take(bool ok) {
  absl::Status interruption;
  {
    platform::MutexLock lock(mutex_);
    interruption = stopped_;
  }
  if (!interruption.ok()) return FinishWith(interruption);
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
  {
    platform::MutexLock lock(mutex_);
    phase_ = Phase::kFinished;
  }
  this->Finish(rpc::ToGrpcStatus(status));
}

template class Upload<v1::UploadArtifactRequest>;
template class Upload<v1::UploadDataRequest>;

}  // namespace lengthwise::server
