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
                             std::string payer = "", absl::string_view method = "") {
    std::shared_ptr<AnswerStream> stream(new AnswerStream(std::move(handle), std::move(admission),
                                                          streams, std::move(payer), method));
    stream->Own();
    platform::MutexLock lock(stream->mutex_);
    stream->Proceed();
    return stream.get();
  }

  void Stop(const absl::Status& reason) override {
    platform::MutexLock lock(mutex_);
    failure_.Update(reason);
    Proceed();
  }

  // Called by gRPC.
  void OnReadDone(bool ok) override {
    std::optional<Answer>* place = nullptr;
    {
      platform::MutexLock lock(mutex_);
      if (finished_) return;
      if (!ok) {
        half_closed_ = true;
        return Proceed();
      }
      place = &answers_.emplace_back();
    }
    handle_(std::move(request_),
            [self = this->shared_from_this(), place](absl::StatusOr<Response> answer) {
              self->OnAnswered(*place, std::move(answer));
            });
    // Only now: the next request must not reach the command loop before this one.
    platform::MutexLock lock(mutex_);
    reading_ = false;
    Proceed();
  }

  void OnWriteDone(bool ok) override {
    platform::MutexLock lock(mutex_);
    writing_ = false;
    answer_.share.reset();
    if (!ok) failure_.Update(absl::CancelledError("the client is gone"));
    Proceed();
  }

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
  void OnAnswered(std::optional<Answer>& place, absl::StatusOr<Response> answer) {
    AnswerBudget::Share share;
    if (answer.ok() && !payer_.empty()) {
      auto taken = this->streams_.answers().Take(payer_, method_, *answer);
      if (taken.ok()) share = *std::move(taken);
      if (!taken.ok()) answer = taken.status();
    }
    platform::MutexLock lock(mutex_);
    failure_.Update(answer.status());
    if (answer.ok()) place = Answer{*std::move(answer), std::move(share)};
    Proceed();
  }

  // Starts whatever can start: a read, a write, or the end of the stream. The caller keeps its
  // lock: gRPC reports what has started from other threads, and calls OnDone, which may free the
  // stream, after its reports. A caller that gRPC has not called holds the stream.
  // In answer_stream.cc, which //tests/faults compiles again.
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
