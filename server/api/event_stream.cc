#include "server/api/event_stream.h"

#include <set>
#include <utility>

#include "google/protobuf/descriptor.h"
#include "platform/failpoint.h"
#include "proto/printable_message.h"
#include "rpc/status.h"

namespace lengthwise::server {
namespace {

bool HasText(const google::protobuf::Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    if (field.type() == google::protobuf::FieldDescriptor::TYPE_STRING) return true;
    if (field.message_type() != nullptr && HasText(*field.message_type())) return true;
  }
  return false;
}

// By field number in Event's oneof.
std::set<int> FactsWithText() {
  std::set<int> facts;
  const google::protobuf::OneofDescriptor& fact = *v1::Event::descriptor()->oneof_decl(0);
  for (int i = 0; i < fact.field_count(); ++i) {
    if (HasText(*fact.field(i)->message_type())) facts.insert(fact.field(i)->number());
  }
  return facts;
}

// Only facts with text are made printable: there are millions of points, and walking a message by
// reflection is expensive. Names outside the facts either match a trial and its lease or are
// refused.
void MakeTextPrintable(v1::StreamEventsRequest& request) {
  static const std::set<int>* const with_text = new std::set<int>(FactsWithText());
  for (v1::Event& event : *request.mutable_events()) {
    if (with_text->contains(event.fact_case())) MakePrintable(event);
  }
}

}  // namespace

EventStream* EventStream::Start(Store store, OpenStreams& streams, std::string caller) {
  std::shared_ptr<EventStream> stream(
      new EventStream(std::move(store), streams, std::move(caller)));
  stream->Own();
  stream->Proceed();
  return stream.get();
}

void EventStream::Stop(const absl::Status& reason) {
  {
    platform::MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = reason;
  }
  Proceed();
}

void EventStream::OnReadDone(bool ok) {
  int64_t index = 0;
  v1::StreamEventsRequest request;
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
    MakeTextPrintable(request);
    store_(std::move(request), caller_,
           [self = shared_from_this(), index](absl::StatusOr<v1::StreamEventsResponse> answer) {
             self->OnStored(index, std::move(answer));
           });
    // Reset only now: the next request must not reach the command loop before this one.
    platform::MutexLock lock(mutex_);
    reading_ = false;
  }
  Proceed();
}

void EventStream::OnStored(int64_t index, absl::StatusOr<v1::StreamEventsResponse> answer) {
  {
    platform::MutexLock lock(mutex_);
    if (finished_) return;
    if (answer.ok()) {
      answers_[index - first_] = *std::move(answer);
    } else if (failure_.ok()) {
      failure_ = answer.status();
    }
  }
  Proceed();
}

void EventStream::OnWriteDone(bool ok) {
  {
    platform::MutexLock lock(mutex_);
    writing_ = false;
    if (!ok && failure_.ok()) failure_ = absl::CancelledError("the worker is gone");
  }
  Proceed();
}

void EventStream::OnCancel() {
  {
    platform::MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = absl::CancelledError("the worker cancelled the call");
  }
  Proceed();
}

void EventStream::Proceed() {
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
          response_ = *std::move(answers_.front());
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
    if (write) StartWrite(&response_);
    if (read) StartRead(&request_);
    // Last: OnDone may be called at any time from here on.
    if (finish) return Finish(rpc::ToGrpcStatus(status));
    if (!started) return;
  }
}

}  // namespace lengthwise::server
