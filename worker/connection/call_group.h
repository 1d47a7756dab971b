// Cancels a group of calls in flight together, so that threads waiting for the server can be
// stopped.
#ifndef LENGTHWISE_WORKER_CONNECTION_CALL_GROUP_H_
#define LENGTHWISE_WORKER_CONNECTION_CALL_GROUP_H_

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "platform/mutex.h"

namespace lengthwise::worker {

// Thread-safe. Must outlive its calls.
class CallGroup {
 public:
  CallGroup() = default;
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  // Cancels the calls in flight and every later one.
  void Cancel();
  bool is_cancelled();

  // Context of one call. Must live until the call ends.
  class Call {
   public:
    // The call fails with DEADLINE_EXCEEDED after `timeout`.
    explicit Call(CallGroup& group, absl::Duration timeout = absl::InfiniteDuration());
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    grpc::ClientContext* context() { return &context_; }

   private:
    CallGroup& group_;
    grpc::ClientContext context_;
  };

 private:
  platform::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<grpc::ClientContext*> in_flight_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_CALL_GROUP_H_
