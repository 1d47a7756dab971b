// AnswerStream: one call of StreamEvents, or of reflection. Requests are handled as they arrive;
// answers return in the order of the requests.
//
// Back-pressure: at most kMaxInFlight requests are in flight between read and answer, so a slow
// core, or a client that does not read its answers, delays that client and does not fill the
// server's memory. At most one read and one write are outstanding. Nothing here blocks, so
// everything runs on the calling thread: gRPC's or the command loop's.
#ifndef LENGTHWISE_SERVER_API_ANSWER_STREAM_H_
#define LENGTHWISE_SERVER_API_ANSWER_STREAM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/server_callback.h"
#include "platform/mutex.h"
#include "proto/worker_service.pb.h"
#include "server/api/answer_budget.h"
#include "server/api/open_streams.h"
#include "server/api/reflection.pb.h"
#include "server/coordination/waiting_calls.h"
#include "server/security/gate.h"

namespace lengthwise::server {

template <typename Request, typename Response, int64_t kInFlight>
class AnswerStream final : public OwnedStream<AnswerStream<Request, Response, kInFlight>,
                                              grpc::ServerBidiReactor<Request, Response>> {
 public:
  static constexpr int64_t kMaxInFlight = kInFlight;

  // Handles a request and calls the callback once, on any thread.
  using Handle = std::function<void(Request, Done<Response>)>;

  // `streams` and `method` must outlive the stream. An answer of `method` counts for `payer` in the
  // budget until it is sent. Without a payer, the handler counts answers.
  static AnswerStream* Start(Handle handle, Gate::Admission admission, OpenStreams& streams,
                             std::string payer = "", absl::string_view method = "");

  void Stop(const absl::Status& reason) override;

  // Called by gRPC.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;

 private:
  struct Answer {
    Response response;
    AnswerBudget::Share share;
  };

  AnswerStream(Handle handle, Gate::Admission admission, OpenStreams& streams, std::string payer,
               absl::string_view method)
      : OwnedStream<AnswerStream, grpc::ServerBidiReactor<Request, Response>>(std::move(admission),
                                                                              streams),
        handle_(std::move(handle)),
        payer_(std::move(payer)),
        method_(method) {}

  // Called with the answer that belongs into `place`, of answers_.
  void OnAnswered(std::optional<Answer>& place, absl::StatusOr<Response> answer);
  // Starts whatever can start: a read, a write, or the end of the stream. The caller keeps its
  // lock: gRPC reports what has started from other threads, and calls OnDone, which may free the
  // stream, after its reports. A caller that gRPC has not called holds the stream.
  void Proceed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Handle handle_;
  const std::string payer_;
  const absl::string_view method_;
  Request request_;  // gRPC's while reading_
  Answer answer_;    // gRPC's while writing_

  platform::Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Why the stream ends early.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Answers that are not written yet, in the order of the requests; absent ones are not known yet.
  std::deque<std::optional<Answer>> answers_ ABSL_GUARDED_BY(mutex_);
};

using EventStream = AnswerStream<v1::StreamEventsRequest, v1::StreamEventsResponse, 16>;
// Its answers are large: the client has read one before the next is made.
using ReflectionStream = AnswerStream<grpc::reflection::v1alpha::ServerReflectionRequest,
                                      grpc::reflection::v1alpha::ServerReflectionResponse, 1>;

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_ANSWER_STREAM_H_
