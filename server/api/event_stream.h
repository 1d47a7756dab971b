// EventStream: one worker's StreamEvents. Requests go to the core as they arrive; answers return in
// the order of the requests.
//
// Back-pressure: at most kMaxInFlight requests are in flight between read and answer, so a slow
// core, or a worker that does not read its answers, delays that worker and does not fill the
// server's memory. At most one read and one write are outstanding. Nothing here blocks, so
// everything runs on the calling thread: gRPC's or the command loop's.
#ifndef LENGTHWISE_SERVER_API_EVENT_STREAM_H_
#define LENGTHWISE_SERVER_API_EVENT_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/server_callback.h"
#include "platform/mutex.h"
#include "proto/worker_service.pb.h"
#include "server/api/open_streams.h"

namespace lengthwise::server {

class EventStream final
    : public OwnedStream<
          EventStream, grpc::ServerBidiReactor<v1::StreamEventsRequest, v1::StreamEventsResponse>> {
 public:
  static constexpr int64_t kMaxInFlight = 16;

  // Stores a request's events and calls the callback once, on any thread.
  using Store = std::function<void(v1::StreamEventsRequest, std::string caller,
                                   std::function<void(absl::StatusOr<v1::StreamEventsResponse>)>)>;

  // `streams` must outlive the stream. `caller` is the principal that opened it.
  static EventStream* Start(Store store, OpenStreams& streams, std::string caller);

  void Stop(const absl::Status& reason) override;

  // Called by gRPC.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;

 private:
  EventStream(Store store, OpenStreams& streams, std::string caller)
      : OwnedStream(streams), store_(std::move(store)), caller_(std::move(caller)) {}

  // Called with the answer to request number `index`.
  void OnStored(int64_t index, absl::StatusOr<v1::StreamEventsResponse> answer);
  // Starts whatever can start: a read, a write, or the end of the stream.
  void Proceed();

  const Store store_;
  const std::string caller_;
  v1::StreamEventsRequest request_;    // gRPC's while reading_
  v1::StreamEventsResponse response_;  // gRPC's while writing_

  platform::Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Number of threads that have set reading_ or writing_ but not started the operation yet. Finish
  // waits for them, because gRPC may call OnDone as soon as all started operations are done.
  int starting_ ABSL_GUARDED_BY(mutex_) = 0;
  // Why the stream ends early.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Answers that are not written yet, by request; absent ones are not known yet. The first belongs
  // to request number first_.
  std::deque<std::optional<v1::StreamEventsResponse>> answers_ ABSL_GUARDED_BY(mutex_);
  int64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_EVENT_STREAM_H_
