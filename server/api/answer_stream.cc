#include "server/api/answer_stream.h"

#include <utility>

#include "platform/failpoint.h"

namespace lengthwise::server {

template <typename Request, typename Response, int64_t kInFlight>
AnswerStream<Request, Response, kInFlight>* AnswerStream<Request, Response, kInFlight>::Start(
    Handle handle, Gate::Admission admission, OpenStreams& streams, std::string payer,
    absl::string_view method) {
  std::shared_ptr<AnswerStream> stream(
      new AnswerStream(std::move(handle), std::move(admission), streams, std::move(payer), method));
  stream->Own();
  platform::MutexLock lock(stream->mutex_);
  stream->Proceed();
  return stream.get();
}

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::Stop(const absl::Status& reason) {
  platform::MutexLock lock(mutex_);
  failure_.Update(reason);
  Proceed();
}

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::OnReadDone(bool ok) {
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

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::OnAnswered(std::optional<Answer>& place,
                                                            absl::StatusOr<Response> answer) {
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

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::OnWriteDone(bool ok) {
  platform::MutexLock lock(mutex_);
  writing_ = false;
  answer_.share.reset();
  if (!ok) failure_.Update(absl::CancelledError("the client is gone"));
  Proceed();
}

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::Proceed() {
  if (finished_) return;
  if (!writing_) {
    if (!failure_.ok() || (half_closed_ && answers_.empty())) {
      finished_ = true;
      return this->EndCall(failure_);
    }
    if (!answers_.empty() && answers_.front().has_value()) {
      answer_ = *std::move(answers_.front());
      answers_.pop_front();
      writing_ = true;
      LENGTHWISE_FAILPOINT("stream.acknowledge.before");
      this->StartWrite(&answer_.response);
    }
  }
  const int64_t in_flight = static_cast<int64_t>(answers_.size()) + (writing_ ? 1 : 0);
  if (failure_.ok() && !reading_ && !half_closed_ && in_flight < kMaxInFlight) {
    reading_ = true;
    this->StartRead(&request_);
  }
}

template class AnswerStream<v1::StreamEventsRequest, v1::StreamEventsResponse,
                            EventStream::kMaxInFlight>;
template class AnswerStream<grpc::reflection::v1alpha::ServerReflectionRequest,
                            grpc::reflection::v1alpha::ServerReflectionResponse,
                            ReflectionStream::kMaxInFlight>;

}  // namespace lengthwise::server
