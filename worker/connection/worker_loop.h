// Runs the worker's main loop: lease a pack, run it, send its results, lease the next; and keeps
// the server informed meanwhile.
#ifndef LENGTHWISE_WORKER_CONNECTION_WORKER_LOOP_H_
#define LENGTHWISE_WORKER_CONNECTION_WORKER_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "platform/mutex.h"
#include "proto/worker_service.grpc.pb.h"
#include "worker/connection/backoff.h"
#include "worker/connection/lease_session.h"
#include "worker/connection/reachability.h"
#include "worker/connection/server_calls.h"
#include "worker/pack_session.h"

namespace lengthwise::worker {

// Run's caller runs packs. A second thread calls Synchronize: at the interval that the server asks
// for, and at once when there is something to tell. The server may hold an answer; a newer call
// makes it answer. While a lease is held, its sender's two threads send events (event_sender.h).
// Failed calls do not end a lease: a server that returns from an outage grants it a full duration.
// Drain may be called on any thread.
class WorkerLoop {
 public:
  struct Options {
    // "host:port".
    std::string server;
    // Channel to the server. Null: a plain-text channel without a token is created.
    std::shared_ptr<grpc::Channel> channel;
    // Translates a connection error into an error in the channel's settings; returns OK if the
    // settings are not the cause. Before the first answer, a settings error is final.
    std::function<absl::Status(const absl::Status&)> explain;
    // Id of the worker (startup.h).
    std::string worker_id;
    // Full name of the only experiment to lease trials from. Empty means all.
    std::string experiment;
    // Timeout of calls that the server answers immediately.
    absl::Duration rpc_timeout = absl::Seconds(10);
    // Run returns after this long without a lease.
    absl::Duration exit_when_idle = absl::InfiniteDuration();
    // Time at which the worker starts to drain, before its allocation of the machine ends. Default:
    // never.
    TimePoint drain_at = kNever;
    // The worker takes no lease if drain_at is closer than this, or closer than twice the longest
    // time from a lease to its first step so far: such a run would make no progress.
    absl::Duration shortest_run = absl::Seconds(30);
    // The loop's own calls use `sender.backoff`, too, and it reports `measurements`.
    LeaseSession::Options session;
  };

  // `runner` must outlive the loop. Sends nothing before Run.
  WorkerLoop(const Options& options, PackRunner& runner);

  // Works until drained, idle, or too close to drain_at for another lease, and then returns OK.
  // Returns the runner's device_status() once the device is lost, after its lease has ended.
  // DEADLINE_EXCEEDED: drain_at was too close for any lease from the beginning.
  // Returns the server's error if it refuses the worker for good: another API version, an invalid
  // id or, at first, a token that it does not accept. Call once.
  absl::Status Run();

  // Makes a running pack write its checkpoints, releases its lease and makes Run return, within
  // seconds after the runner returns. Idempotent. If called before Run, Run returns at once.
  // Thread-safe.
  void Drain();

  // Returns the measurements that a call would report now. Thread-safe.
  v1::WorkerMeasurements ReadMeasurements();

 private:
  struct Call;

  // Returns the next lease, or an error if Run should return: CANCELLED without a fault.
  absl::StatusOr<v1::Lease> AwaitLease(TimePoint idle_end);
  // Runs a lease to its end.
  void RunLease(v1::Lease lease);
  // Gives a lease back with the next call, and with later ones until the server has answered.
  void Release(const v1::Lease& lease, const std::string& reason, bool unfit = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The time after which no lease is taken.
  TimePoint LastStart() const;
  // Tells the server that the worker exits, if the server knows it, and ends all calls.
  void Leave();

  // The second thread: calls until the worker has left.
  void Synchronize();
  // Waits until the next call is due. False if there is none.
  bool AwaitCall();
  void Send();
  void Answered(std::shared_ptr<Call> call, const absl::Status& status);
  void Take(const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DrainLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Something is to be told to the server at once.
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  PackRunner& runner_;
  const v1::WorkerDescription description_;
  const std::string process_;  // the session's id
  const std::unique_ptr<v1::WorkerService::StubInterface> stub_;
  Reachability reachability_;
  ObjectTransfers objects_;
  PackCapacities capacities_;
  CallGroup calls_;
  // Longest time from a lease to its first step so far.
  absl::Duration longest_start_;  // Run's thread

  // Mutexes nest in this order: loop, session, outbox, spool.
  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // The server's final answer; OK if there is none.
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);

  // Of the lease.
  bool wants_lease_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<v1::Lease> granted_ ABSL_GUARDED_BY(mutex_);  // for AwaitLease
  std::optional<v1::HeldLease> held_ ABSL_GUARDED_BY(mutex_);
  LeaseSession* session_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<v1::ReleasedLease> released_ ABSL_GUARDED_BY(mutex_);
  // Id of the last lease, and number of the newest call when it came.
  std::string taken_ ABSL_GUARDED_BY(mutex_);
  int64_t taken_at_ ABSL_GUARDED_BY(mutex_) = 0;
  // The server's last reason for not granting a lease, already logged. Empty after a lease.
  std::string no_lease_reason_ ABSL_GUARDED_BY(mutex_);

  // Of the calls. Only the newest one's failure counts.
  int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  bool newest_in_flight_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_news_ ABSL_GUARDED_BY(mutex_) = true;
  TimePoint due_ ABSL_GUARDED_BY(mutex_);
  // After a failure, there is no call before.
  TimePoint retry_at_ ABSL_GUARDED_BY(mutex_);
  Backoff backoff_ ABSL_GUARDED_BY(mutex_);
  // After a first answer, an expired token is not final, because the token can be renewed.
  bool is_known_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(1);
  absl::Duration lease_duration_ ABSL_GUARDED_BY(mutex_);  // 0: unknown

  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_left_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint leave_until_ ABSL_GUARDED_BY(mutex_) = kNever;
  // Unsent events mean that the server is away: one short try is enough.
  absl::Duration patience_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(2);
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_WORKER_LOOP_H_
