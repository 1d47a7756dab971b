// One lease while it is held: what the runner sees of it, and what the heartbeats say and hear of
// it.
#ifndef LENGTHWISE_WORKER_CONNECTION_LEASE_SESSION_H_
#define LENGTHWISE_WORKER_CONNECTION_LEASE_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "proto/worker_service.grpc.pb.h"
#include "worker/connection/backoff.h"
#include "worker/connection/call_group.h"
#include "worker/connection/data_cache.h"
#include "worker/connection/event_sender.h"
#include "worker/connection/outbox.h"
#include "worker/connection/pack_capacities.h"
#include "worker/metrics/measurements.h"
#include "worker/pack_session.h"

namespace lengthwise::worker {

// Thread-safe: the runner's thread, the heartbeats' and a drain meet here.
class LeaseSession final : public PackSession {
 public:
  struct Options {
    Outbox::Options outbox;
    EventSender::Options sender;
    // Longest that a drain takes: what the server has not acknowledged by then is given up.
    absl::Duration drain_timeout = absl::Minutes(5);
    // A drain ends sooner, once the server has taken nothing for this long. A checkpoint that is
    // being uploaded counts as taken part by part.
    absl::Duration drain_stall = absl::Seconds(10);
    // Where the runner's times are counted; outlives the session. Null: nowhere.
    Measurements* measurements = nullptr;
    // Where it is kept that the pack did not fit the device's memory; outlives the session. Null:
    // nowhere.
    PackCapacities* capacities = nullptr;
    // Where files of examples are kept; outlives the session. Null: they cannot be fetched.
    DataCache* data = nullptr;
  };

  // Sends from the start; `stub` outlives the session.
  LeaseSession(v1::WorkerService::StubInterface& stub, v1::Lease lease, const Options& options);

  const v1::Lease& lease() const { return lease_; }

  // Of PackSession.
  void Emit(int64_t trial, v1::Event event) override;
  void EmitCheckpoint(int64_t trial, int64_t step, std::string bytes) override;
  // Tries again while the server is away. CANCELLED when the lease is over or drains, DATA_LOSS for
  // damaged bytes, FAILED_PRECONDITION when the lease names no checkpoint; others are the server's.
  absl::StatusOr<std::string> FetchCheckpoint(int64_t trial) override;
  // As FetchCheckpoint.
  absl::StatusOr<std::string> FetchData(int64_t trial, absl::string_view sha256,
                                        int64_t bytes) override;
  void ReportProgress(int64_t trial, v1::TrialProgress progress) override;
  Directive GetDirective(int64_t trial) override;
  void CountStep(const StepTime& step) override;
  void CountEvaluation(double seconds) override;
  void CountCheckpoint(double seconds, int64_t bytes) override;

  // Heartbeats: adds what is held, what is new of the progress, and what is measured of the lease;
  // and carries out directives. A progress whose heartbeat failed is not sent again: the next one
  // replaces it.
  void AddToHeartbeat(v1::HeartbeatRequest& request);
  void AddMeasurements(v1::WorkerMeasurements& measurements);
  void Apply(const v1::HeartbeatResponse& response);

  // Tells the runner to drain, and cancels downloads. Nobody waits for the server longer than
  // drain_timeout from now, or drain_stall from its last progress.
  void Drain();
  // Why the server wants the lease back; empty: it does not. The session drains then, the worker
  // goes on.
  std::string preemption();
  // The lease is over: the runner is told so, and nothing more is sent.
  void Abandon();
  bool lost() const { return outbox_.closed(); }

  // From the lease to the end of its first step; zero before that.
  absl::Duration time_to_first_step() const {
    return absl::Nanoseconds(nanoseconds_to_first_step_.load());
  }

  // After the run: waits until everything is acknowledged, without end while not draining; false
  // when the lease was lost or the drain ended before.
  bool Flush();
  // Ends sending.
  void StopSending();
  // Whether every trial has an acknowledged outcome or was cancelled.
  bool IsComplete() const;

 private:
  void Preempt(const std::string& reason);
  // Asks for an artifact of the trial, and again while the server is away.
  absl::Status Fetch(int64_t trial, absl::string_view sha256, absl::string_view what,
                     const std::function<absl::Status(const v1::DownloadArtifactRequest&)>& ask);

  struct Progress {
    v1::TrialProgress newest;
    bool sent = true;
  };

  const v1::Lease lease_;
  const Options options_;
  v1::WorkerService::StubInterface& stub_;
  Outbox outbox_;
  CallGroup calls_;  // downloads
  const TimePoint start_ = After(absl::ZeroDuration());
  std::atomic<bool> draining_ = false;
  std::atomic<int64_t> nanoseconds_to_first_step_ = 0;
  platform::Mutex mutex_;
  std::vector<Progress> progress_ ABSL_GUARDED_BY(mutex_);
  std::string preemption_ ABSL_GUARDED_BY(mutex_);
  TimePoint drain_end_ ABSL_GUARDED_BY(mutex_) = kNever;
  EventSender sender_;  // last: stops first
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_LEASE_SESSION_H_
