// The worker's standing at the server: registered, and heard of at every heartbeat.
#ifndef LENGTHWISE_WORKER_CONNECTION_PRESENCE_H_
#define LENGTHWISE_WORKER_CONNECTION_PRESENCE_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "platform/mutex.h"
#include "proto/worker_service.grpc.pb.h"
#include "worker/connection/backoff.h"
#include "worker/connection/call_group.h"
#include "worker/connection/lease_session.h"
#include "worker/connection/pack_capacities.h"
#include "worker/connection/reachability.h"
#include "worker/metrics/measurements.h"

namespace lengthwise::worker {

// Owns one thread that registers, retries without end while the server is away, sends heartbeats at
// the interval that the server asked for, and registers again when the server does not know the
// worker. A server may hold the answer to a heartbeat for up to a quarter of a lease: one answer
// can then be lost, and the lease is still renewed in time. Failing heartbeats change nothing for a
// lease: a server that was away gives it a full duration when it is back. Thread-safe.
class Presence {
 public:
  struct Options {
    Backoff::Options backoff;
    // Timeout of one registration or heartbeat, beside the time for which its answer is held.
    absl::Duration rpc_timeout = absl::Seconds(10);
    // As in Connection::Options.
    std::function<absl::Status(const absl::Status&)> explain;
    // What heartbeats tell of the worker, beside its lease; outlives the presence. Null: nothing.
    Measurements* measurements = nullptr;
    // What they tell of the device's memory: once, and to a server that takes the worker anew
    // before it is asked for a lease. Outlives the presence. Null: nothing.
    PackCapacities* capacities = nullptr;
  };

  // Starts. `stub` and `reachability` outlive it.
  Presence(v1::WorkerService::StubInterface& stub, v1::WorkerDescription description,
           Reachability& reachability, const Options& options);
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // Waits until the worker is registered. DEADLINE_EXCEEDED at `deadline`, CANCELLED after
  // Interrupt; what the server answered where it will never take this worker (another API version,
  // a token that it does not know): final.
  absl::Status WaitUntilRegistered(TimePoint deadline);
  void Interrupt();

  // Tells the server that the worker exits, if the worker is registered; tries once, for at most
  // `patience`. Ends the heartbeats.
  void SayGoodbye(absl::Duration patience);

  // Another call was told NOT_FOUND: register again.
  void RegistrationLost();

  // The session whose lease the heartbeats renew; null for none. When this returns, the one before
  // is not used any more.
  void SetSession(LeaseSession* session);

 private:
  void Run();
  absl::Status Register();
  // The server may hold the answer for `wait`. Stop ends it.
  absl::Status SendHeartbeat(absl::Duration wait);
  // As the newest answer asks for.
  absl::Duration heartbeat_interval() ABSL_LOCKS_EXCLUDED(mutex_);
  // An absent duration changes nothing.
  void SetHeartbeatInterval(const google::protobuf::Duration& interval)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the thread.
  void Stop();
  void Wait(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  v1::WorkerService::StubInterface& stub_;
  const v1::WorkerDescription description_;
  Reachability& reachability_;
  const Options options_;
  CallGroup calls_;

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  bool registered_ ABSL_GUARDED_BY(mutex_) = false;
  // A worker that was taken once is kept when its token expires: the token can be renewed.
  bool was_registered_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  absl::Duration heartbeat_interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
  absl::Duration lease_duration_ ABSL_GUARDED_BY(mutex_);  // zero: the server did not say
  LeaseSession* session_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_PRESENCE_H_
