// Calls to the server: the channel, cancellation of calls in flight, and which errors to retry.
#ifndef LENGTHWISE_WORKER_CONNECTION_SERVER_CALLS_H_
#define LENGTHWISE_WORKER_CONNECTION_SERVER_CALLS_H_

#include <functional>
#include <future>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "platform/mutex.h"
#include "rpc/channel.h"
#include "rpc/status.h"
#include "worker/connection/backoff.h"
#include "worker/connection/reachability.h"

namespace lengthwise::worker {

// A channel that connects when first used, reconnects after `reconnect`, notices a dead peer within
// 40 s (keepalive), and never goes through a proxy. Errors are those of rpc/channel.h; only
// UNAVAILABLE, if no host of several is known, may be temporary.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateServerChannel(
    const rpc::ChannelOptions& options, const Backoff::Options& reconnect);

// Cancels a group of calls in flight together, so that threads waiting for the server can be
// stopped. Thread-safe. Must outlive its calls.
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

// Cancels a call that has moved nothing for some time. A deadline would also end a transfer over a
// slow link, and each retry starts from the first byte.
class StallGuard {
 public:
  // Cancels the call of `context`, which must outlive it, `patience` after the last progress.
  StallGuard(grpc::ClientContext& context, absl::Duration patience);
  ~StallGuard();
  StallGuard(const StallGuard&) = delete;
  StallGuard& operator=(const StallGuard&) = delete;

  void NoteProgress();
  // The call's status: DEADLINE_EXCEEDED in place of that of a call that this cancelled.
  absl::Status Explain(absl::Status status);

 private:
  const absl::Duration patience_;
  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  TimePoint end_ ABSL_GUARDED_BY(mutex_);
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  bool stalled_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Repeats `connect` until it returns anything but UNAVAILABLE, waiting as `reconnect` says.
// `status` is the result of its first call. Logs through `reachability`. Returns CANCELLED once
// `stop` is ready, and DEADLINE_EXCEEDED at `end`; does not interrupt a call.
absl::Status RetryWhileUnavailable(absl::Status status,
                                   const std::function<absl::Status()>& connect,
                                   const Backoff::Options& reconnect, Reachability& reachability,
                                   TimePoint end, const std::shared_future<void>& stop);

// Code and message alone (rpc::ToStatus), but a time to retry, which IsTransient reads, stays.
absl::Status ToStatus(const grpc::Status& status);

// Returns true if a retry may succeed: the server is away, overloaded or restarting (or
// says when to call again), or the worker's token may be renewed (its file is read again).
bool IsTransient(const absl::Status& status);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_SERVER_CALLS_H_
