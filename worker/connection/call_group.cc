#include "worker/connection/call_group.h"

#include "absl/time/clock.h"

namespace lengthwise::worker {

void CallGroup::Cancel() {
  platform::MutexLock lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : in_flight_) context->TryCancel();
}

bool CallGroup::is_cancelled() {
  platform::MutexLock lock(mutex_);
  return cancelled_;
}

CallGroup::Call::Call(CallGroup& group, absl::Duration timeout) : group_(group) {
  if (timeout != absl::InfiniteDuration()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  platform::MutexLock lock(group_.mutex_);
  group_.in_flight_.insert(&context_);
  // gRPC remembers this until the call starts.
  if (group_.cancelled_) context_.TryCancel();
}

CallGroup::Call::~Call() {
  platform::MutexLock lock(group_.mutex_);
  group_.in_flight_.erase(&context_);
}

}  // namespace lengthwise::worker
