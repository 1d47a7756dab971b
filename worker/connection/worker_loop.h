// The worker's life: register, lease a pack, run it, send what it produced, lease the next.
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
#include "worker/connection/call_group.h"
#include "worker/connection/lease_session.h"
#include "worker/connection/pack_capacities.h"
#include "worker/connection/presence.h"
#include "worker/connection/reachability.h"
#include "worker/pack_session.h"

namespace lengthwise::worker {

// Threads: Run's caller acquires leases and runs packs; one waits for drain_at, where that is set;
// the presence's thread registers and sends heartbeats; while a lease is held, its sender's two
// threads send events (see presence.h and event_sender.h). Drain may be called on any.
class Connection {
 public:
  struct Options {
    // "host:port".
    std::string server;
    // To the server; absent: one in plain text and without a token.
    std::shared_ptr<grpc::Channel> channel;
    // What an error of the connection means for the settings of the channel, OK for nothing: an
    // error in them that the server meets before it has ever taken the worker is final.
    std::function<absl::Status(const absl::Status&)> explain;
    // See worker_id.h.
    std::string worker_id;
    // Full name of the only experiment to lease trials from. Empty means all.
    std::string experiment;
    // How long one AcquireLease waits for a pack; at most 60 s.
    absl::Duration acquire_wait = absl::Seconds(20);
    // Deadline of calls that the server answers at once.
    absl::Duration rpc_timeout = absl::Seconds(10);
    // Between tries of anything.
    Backoff::Options backoff;
    // Run returns after this long without a lease.
    absl::Duration exit_when_idle = absl::InfiniteDuration();
    // When the worker begins to drain by itself, because its machine is lent until soon after.
    TimePoint drain_at = kNever;
    // No lease is asked for when less remains until drain_at than this, or than twice the longest
    // time that an earlier lease took to its first step: it could not get anywhere.
    absl::Duration shortest_run = absl::Seconds(30);
    // Its `sender.backoff` and `capacities` are replaced, by `backoff` and the connection's own.
    // Its `measurements` are told by heartbeats, too.
    LeaseSession::Options session;
  };

  // `runner` outlives the connection. Nothing is sent before Run.
  Connection(const Options& options, PackRunner& runner);
  ~Connection();

  // Works until drained, idle, or too close to drain_at for another lease: OK. A final refusal of
  // the server (another API version, an invalid id, at the first registration a token that it does
  // not take) is returned. Called once.
  absl::Status Run();

  // Asks a running pack for its checkpoints, gives its lease back and lets Run return, within
  // seconds after the runner has returned. Thread-safe; again changes nothing; before Run, Run
  // returns at once.
  void Drain();

  // Returns the measurements that a heartbeat would report now. Thread-safe.
  v1::WorkerMeasurements ReadMeasurements();

 private:
  // NOT_FOUND: not registered. A lease without trials: none was there.
  absl::StatusOr<v1::Lease> AcquireLease(absl::Duration wait);
  // Runs a lease to its end. Errors are those of the runner.
  absl::Status RunLease(v1::Lease lease);
  // Retries for `patience`. An unreleased lease expires on its own.
  void ReleaseLease(const v1::Lease& lease, const std::string& reason, absl::Duration patience);
  // Until no lease may be asked for; infinite without drain_at.
  absl::Duration TimeForLeases();
  // Drains at drain_at, unless Run returns before.
  void DrainInTime();
  // Waits, or less when draining.
  void Wait(absl::Duration duration);
  bool draining();

  const Options options_;
  PackRunner& runner_;
  const std::unique_ptr<v1::WorkerService::StubInterface> stub_;
  Reachability reachability_;
  PackCapacities capacities_;
  CallGroup acquire_calls_;  // cancelled by Drain

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  LeaseSession* session_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Longest time from a lease to its first step so far.
  absl::Duration longest_start_;  // Run's thread
  // Exists while Run runs.
  std::unique_ptr<Presence> presence_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_WORKER_LOOP_H_
