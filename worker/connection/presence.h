// Keeps the worker registered with the server and sends its heartbeats.
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
#include "worker/connection/lease_session.h"
#include "worker/connection/pack_capacities.h"
#include "worker/connection/reachability.h"
#include "worker/connection/server_calls.h"
#include "worker/metrics/measurements.h"

namespace lengthwise::worker {

// Owns one thread that registers, retries indefinitely while the server is away, sends heartbeats
// at the interval that the server requests, and registers again if the server does not know the
// worker. A server may hold the answer to a heartbeat for up to a quarter of the lease duration, so
// that the lease is renewed in time even if one answer is lost. Failed heartbeats do not end a
// lease: a server that returns from an outage grants it a full duration. Thread-safe.
class Presence {
 public:
  struct Options {
    Backoff::Options backoff;
    // Timeout of one registration or heartbeat, in addition to the time for which the server may
    // hold the answer.
    absl::Duration rpc_timeout = absl::Seconds(10);
    // As in Connection::Options (worker_loop.h).
    std::function<absl::Status(const absl::Status&)> explain;
    // Worker metrics to send with heartbeats. Must outlive the presence. Null: none.
    Measurements* measurements = nullptr;
    // Pack capacities to report: each once, and all of them to a server that registers the worker
    // again, before it is asked for a lease. Must outlive the presence. Null: none.
    PackCapacities* capacities = nullptr;
  };

  // Starts the thread. `stub` and `reachability` must outlive the presence.
  Presence(v1::WorkerService::StubInterface& stub, v1::WorkerDescription description,
           Reachability& reachability, const Options& options);
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // Waits until the worker is registered. DEADLINE_EXCEEDED at `deadline`; CANCELLED after
  // Interrupt; the server's answer if it is final because the server will never accept this worker
  // (another API version, an unknown token).
  absl::Status WaitUntilRegistered(TimePoint deadline);
  void Interrupt();

  // Ends the heartbeats and, if the worker is registered, tells the server that it exits. Tries
  // once, for at most `patience`.
  void SayGoodbye(absl::Duration patience);

  // Registers again. Call it when another rpc returned NOT_FOUND for the worker.
  void RegistrationLost();

  // Sets the session whose lease the heartbeats renew; null for none. On return the previous
  // session is no longer used.
  void SetSession(LeaseSession* session);

 private:
  void Run();
  absl::Status Register();
  // Lets the server hold the answer for `wait`. Stop cancels the call.
  absl::Status SendHeartbeat(absl::Duration wait);
  // The interval that the server requested last.
  absl::Duration heartbeat_interval() ABSL_LOCKS_EXCLUDED(mutex_);
  // No-op if the duration is absent or 0.
  void SetHeartbeatInterval(const google::protobuf::Duration& interval)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cancels calls and joins the thread.
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
  // After a first registration, an expired token is not final, because the token can be renewed.
  bool was_registered_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  absl::Duration heartbeat_interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
  absl::Duration lease_duration_ ABSL_GUARDED_BY(mutex_);  // 0: unknown
  LeaseSession* session_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_PRESENCE_H_
