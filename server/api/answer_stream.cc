#include "server/api/answer_stream.h"

#include <utility>

#include "platform/failpoint.h"

namespace lengthwise::server {

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
