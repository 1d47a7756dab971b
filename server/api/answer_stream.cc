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
  stream->Proceed();
  return stream.get();
}

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::Stop(const absl::Status& reason) {
  {
    platform::MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = reason;
  }
  Proceed();
}

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::OnReadDone(bool ok) {
  int64_t index = 0;
  Request request;
  {
    platform::MutexLock lock(mutex_);
    if (finished_) return;
    if (ok) {
      index = first_ + static_cast<int64_t>(answers_.size());
      answers_.emplace_back();
      request = std::move(request_);
    } else {
      half_closed_ = true;
      reading_ = false;
    }
  }
  if (ok) {
    handle_(std::move(request),
            [self = this->shared_from_this(), index](absl::StatusOr<Response> answer) {
              self->OnAnswered(index, std::move(answer));
            });
    // Reset only now: the next request must not reach the command loop before this one.
    platform::MutexLock lock(mutex_);
    reading_ = false;
  }
  Proceed();
}

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::OnAnswered(int64_t index,
                                                            absl::StatusOr<Response> answer) {
  AnswerBudget::Share share;
  if (answer.ok() && !payer_.empty()) {
    auto taken = this->streams_.answers().Take(payer_, method_, *answer);
    if (taken.ok()) share = *std::move(taken);
    if (!taken.ok()) answer = taken.status();
  }
  {
    platform::MutexLock lock(mutex_);
    if (finished_) return;
    if (answer.ok()) {
      answers_[index - first_] = Answer{*std::move(answer), std::move(share)};
    } else if (failure_.ok()) {
      failure_ = answer.status();
    }
  }
  Proceed();
}

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::OnWriteDone(bool ok) {
  {
    platform::MutexLock lock(mutex_);
    writing_ = false;
    answer_.share.reset();
    if (!ok && failure_.ok()) failure_ = absl::CancelledError("the client is gone");
  }
  Proceed();
}

template <typename Request, typename Response, int64_t kInFlight>
void AnswerStream<Request, Response, kInFlight>::Proceed() {
  bool started = false;
  while (true) {
    bool read = false, write = false, finish = false;
    absl::Status status;
    {
      platform::MutexLock lock(mutex_);
      if (std::exchange(started, false)) --starting_;
      if (finished_) return;
      if (!writing_) {
        if (!failure_.ok() || (half_closed_ && answers_.empty())) {
          // Not while another thread is about to start a read or a write. That thread calls Proceed
          // afterwards.
          if (starting_ > 0) return;
          finished_ = finish = true;
          status = failure_;
        } else if (!answers_.empty() && answers_.front().has_value()) {
          answer_ = *std::move(answers_.front());
          answers_.pop_front();
          ++first_;
          writing_ = write = true;
        }
      }
      const int64_t in_flight = static_cast<int64_t>(answers_.size()) + (writing_ ? 1 : 0);
      if (!finished_ && failure_.ok() && !reading_ && !half_closed_ && in_flight < kMaxInFlight) {
        reading_ = read = true;
      }
      if (read || write) {
        ++starting_;
        started = true;
      }
    }
    if (write) LENGTHWISE_FAILPOINT("stream.acknowledge.before");
    if (write) this->StartWrite(&answer_.response);
    if (read) this->StartRead(&request_);
    if (finish) return this->EndCall(status);
    if (!started) return;
  }
}

template class AnswerStream<v1::StreamEventsRequest, v1::StreamEventsResponse,
                            EventStream::kMaxInFlight>;
template class AnswerStream<grpc::reflection::v1alpha::ServerReflectionRequest,
                            grpc::reflection::v1alpha::ServerReflectionResponse,
                            ReflectionStream::kMaxInFlight>;

}  // namespace lengthwise::server
