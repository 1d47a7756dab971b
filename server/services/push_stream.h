// A server stream whose responses a function produces on the pool, waiting for each write: for
// downloads and queries whose answers are large. The thread is busy until the client has taken
// everything or is gone, so such streams have a pool of their own.
#ifndef LENGTHWISE_SERVER_SERVICES_PUSH_STREAM_H_
#define LENGTHWISE_SERVER_SERVICES_PUSH_STREAM_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "platform/mutex.h"
#include "server/services/open_streams.h"
#include "server/services/status.h"
#include "server/services/work_pool.h"

namespace lengthwise::server {

template <typename Response>
class PushStream final : public grpc::ServerWriteReactor<Response>,
                         public StoppableStream,
                         public std::enable_shared_from_this<PushStream<Response>> {
 public:
  // Sends one response; waits until the one before was written. False: the client is gone or the
  // stream was stopped, and nothing more is sent.
  using Send = std::function<bool(Response)>;
  // Runs once, on the pool. What it returns is the stream's status.
  using Produce = std::function<absl::Status(const Send&)>;

  // `pool` and `streams` outlive the stream.
  static PushStream* Start(Produce produce, WorkPool& pool, OpenStreams& streams) {
    std::shared_ptr<PushStream> stream(new PushStream(std::move(produce), streams));
    stream->self_ = stream;
    streams.Add(stream);
    pool.Submit([stream] { stream->Run(); });
    return stream.get();
  }

  void Stop(const absl::Status& reason) override {
    platform::MutexLock lock(mutex_);
    if (stopped_.ok()) stopped_ = reason;
  }

  // From gRPC.
  void OnWriteDone(bool ok) override {
    platform::MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
    changed_.NotifyAll();
  }
  void OnCancel() override {
    platform::MutexLock lock(mutex_);
    cancelled_ = true;  // an outstanding write ends, too
  }
  void OnDone() override {
    streams_.Remove(this);
    const std::shared_ptr<PushStream> self = std::move(self_);
  }

 private:
  PushStream(Produce produce, OpenStreams& streams)
      : produce_(std::move(produce)), streams_(streams) {}

  void Run() {
    absl::Status status =
        produce_([this](Response response) { return Write(std::move(response)); });
    {
      platform::MutexLock lock(mutex_);
      while (writing_) changed_.Wait(mutex_);
      if (cancelled_) {
        status = absl::CancelledError("the client cancelled the call");
      } else if (refused_) {
        status = stopped_;
      }
    }
    this->Finish(ToGrpcStatus(status));
  }

  bool Write(Response response) {
    {
      platform::MutexLock lock(mutex_);
      while (writing_) changed_.Wait(mutex_);
      if (cancelled_ || !stopped_.ok()) {
        refused_ = true;
        return false;
      }
      response_ = std::move(response);
      writing_ = true;
    }
    this->StartWrite(&response_);
    return true;
  }

  const Produce produce_;
  OpenStreams& streams_;
  std::shared_ptr<PushStream> self_;  // gRPC's ownership; released by OnDone
  Response response_;                 // gRPC's while writing_

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // why; OK while it is not
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_PUSH_STREAM_H_
