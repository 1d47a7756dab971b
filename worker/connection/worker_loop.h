// Runs the worker's main loop: register, lease a pack, run it, send its results, lease the next.
#ifndef LENGTHWISE_WORKER_CONNECTION_WORKER_LOOP_H_
#define LENGTHWISE_WORKER_CONNECTION_WORKER_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "platform/mutex.h"
#include "proto/worker_service.grpc.pb.h"
#include "worker/connection/backoff.h"
#include "worker/connection/lease_session.h"
#include "worker/connection/pack_capacities.h"
#include "worker/connection/presence.h"
#include "worker/connection/reachability.h"
#include "worker/connection/server_calls.h"
#include "worker/pack_session.h"

namespace lengthwise::worker {

// Threads: Run's caller acquires leases and runs packs. A timer thread waits for drain_at, if set.
// The presence's thread registers and sends heartbeats (presence.h). While a lease is held, its
// sender's two threads send events (event_sender.h). Drain may be called on any thread.
class Connection {
 public:
  struct Options {
    // "host:port".
    std::string server;
    // Channel to the server. Null: a plain-text channel without a token is created.
    std::shared_ptr<grpc::Channel> channel;
    // Translates a connection error into an error in the channel's settings; returns OK if the
    // settings are not the cause. Before the first registration, a settings error is final.
    std::function<absl::Status(const absl::Status&)> explain;
    // Id to register under (startup.h).
    std::string worker_id;
    // Full name of the only experiment to lease trials from. Empty means all.
    std::string experiment;
    // Time for which one AcquireLease call waits for a pack; at most 60 s.
    absl::Duration acquire_wait = absl::Seconds(20);
    // Timeout of calls that the server answers immediately.
    absl::Duration rpc_timeout = absl::Seconds(10);
    // Wait between retries of all calls.
    Backoff::Options backoff;
    // Run returns after this long without a lease.
    absl::Duration exit_when_idle = absl::InfiniteDuration();
    // Time at which the worker starts to drain, before its allocation of the machine ends. Default:
    // never.
    TimePoint drain_at = kNever;
    // The worker acquires no lease if drain_at is closer than this, or closer than twice the
    // longest time from a lease to its first step so far: such a run would make no progress.
    absl::Duration shortest_run = absl::Seconds(30);
    // The connection replaces `sender.backoff` by `backoff` and sets `capacities` to its own.
    // Heartbeats also report `measurements`.
    LeaseSession::Options session;
  };

  // `runner` must outlive the connection. Sends nothing before Run.
  Connection(const Options& options, PackRunner& runner);
  ~Connection();

  // Works until drained, idle, or too close to drain_at for another lease, and then returns OK.
  // Returns the runner's device_status() once the device is lost, after its lease has ended.
  // Returns the server's error if it refuses the worker for good: another API version, an invalid
  // id or, at the first registration, a token that it does not accept. Call once.
  absl::Status Run();

  // Makes a running pack write its checkpoints, releases its lease and makes Run return, within
  // seconds after the runner returns. Idempotent. If called before Run, Run returns at once.
  // Thread-safe.
  void Drain();

  // Returns the measurements that a heartbeat would report now. Thread-safe.
  v1::WorkerMeasurements ReadMeasurements();

 private:
  // Returns a lease without trials if no pack was available. NOT_FOUND if the worker is not
  // registered.
  absl::StatusOr<v1::Lease> AcquireLease(absl::Duration wait);
  // Runs a lease to its end. Returns the runner's error.
  absl::Status RunLease(v1::Lease lease);
  // Retries for `patience`. An unreleased lease expires on its own. `unfit`: this machine cannot
  // run it.
  void ReleaseLease(const v1::Lease& lease, const std::string& reason, absl::Duration patience,
                    bool unfit = false);
  // Returns the time left for acquiring leases; infinite without drain_at.
  absl::Duration TimeForLeases();
  // Drains at drain_at, unless Run returns first.
  void DrainInTime();
  // Waits for `duration`, or until draining starts.
  void Wait(absl::Duration duration);
  bool draining();

  const Options options_;
  PackRunner& runner_;
  const std::unique_ptr<v1::WorkerService::StubInterface> stub_;
  Reachability reachability_;
  ObjectTransfers objects_;
  PackCapacities capacities_;
  CallGroup acquire_calls_;  // cancelled by Drain

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  LeaseSession* session_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Longest time from a lease to its first step so far.
  absl::Duration longest_start_;  // Run's thread
  // The server's last reason for not granting a lease, already logged. Empty after a lease.
  std::string no_lease_reason_;  // Run's thread
  // Null unless Run is running.
  std::unique_ptr<Presence> presence_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_WORKER_LOOP_H_
