// Represents one held lease: gives the runner its PackSession, and exchanges progress and
// directives with the server (Synchronize).
#ifndef LENGTHWISE_WORKER_CONNECTION_LEASE_SESSION_H_
#define LENGTHWISE_WORKER_CONNECTION_LEASE_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "proto/worker_service.grpc.pb.h"
#include "proto/worker_service.pb.h"
#include "worker/connection/backoff.h"
#include "worker/connection/data_cache.h"
#include "worker/connection/event_sender.h"
#include "worker/connection/outbox.h"
#include "worker/connection/server_calls.h"
#include "worker/metrics/measurements.h"
#include "worker/pack_session.h"

namespace lengthwise::worker {

// Remembers, by shape, how many trials fit this worker's device memory at once. A server forgets
// capacities when it restarts; the worker keeps them as long as it runs. Thread-safe.
class PackCapacities {
 public:
  // Records that a pack of `trials` trials of this shape (Lease.shape) did not fit. The capacity
  // becomes half as many, the size that the server tries next. A single trial that does not fit
  // sets no capacity.
  void DidNotFit(absl::string_view shape, int64_t trials);
  // Records that at most `trials` trials of this shape would fit, judging by a pack's use of
  // memory. Capacities only fall: a pack shows its need when it has reached its longest sequences.
  void Measured(absl::string_view shape, int64_t trials);

  // Adds all capacities: a server that has restarted or been replaced knows none.
  void AddTo(v1::SynchronizeRequest& request) const;

 private:
  void Limit(absl::string_view shape, int64_t trials);

  mutable platform::Mutex mutex_;
  std::map<std::string, int32_t, std::less<>> capacities_ ABSL_GUARDED_BY(mutex_);  // by shape
};

// Thread-safe: used by the runner's thread, the heartbeat thread and the thread that drains.
class LeaseSession final : public PackSession {
 public:
  struct Options {
    Outbox::Options outbox;
    EventSender::Options sender;
    // Maximum duration of a drain. Items unacknowledged by then are dropped.
    absl::Duration drain_timeout = absl::Minutes(5);
    // A drain also ends after this long without progress at the server. Each accepted part of a
    // checkpoint upload is progress.
    absl::Duration drain_stall = absl::Seconds(10);
    // Counts the runner's times. Must outlive the session. Null: not counted.
    Measurements* measurements = nullptr;
    // Cache of data files, required by FetchData. Must outlive the session.
    DataCache* data = nullptr;
  };

  // Starts sending. Records in `capacities` how many trials of the pack's shape fit the device's
  // memory. `stub`, `objects` and `capacities` must outlive the session.
  LeaseSession(v1::WorkerService::StubInterface& stub, ObjectTransfers& objects,
               PackCapacities& capacities, v1::Lease lease, const Options& options);

  const v1::Lease& lease() const { return lease_; }

  // PackSession.
  void Emit(int64_t trial, v1::Event event) override;
  void EmitCheckpoint(int64_t trial, int64_t step, std::string bytes) override;
  // Retries while the server is away. CANCELLED if the trial is cancelled or the lease ends or
  // drains, DATA_LOSS for damaged bytes, FAILED_PRECONDITION if the lease names no checkpoint;
  // otherwise the server's error.
  absl::StatusOr<std::string> FetchCheckpoint(int64_t trial) override;
  // Errors as for FetchCheckpoint; FAILED_PRECONDITION also if this machine cannot store the file.
  absl::StatusOr<std::string> FetchData(int64_t trial, absl::string_view sha256,
                                        int64_t bytes) override;
  void ReportProgress(int64_t trial, v1::TrialProgress progress) override;
  Directive GetDirective(int64_t trial) override;
  void CountStep(const StepTime& step) override;
  void ReportCapacity(int64_t trials) override { capacities_.Measured(lease_.shape(), trials); }
  void CountEvaluation(double seconds) override;
  void CountCheckpoint(double seconds, int64_t bytes) override;

  // For Synchronize: adds new progress and the lease's metrics, and applies the status of the lease
  // in an answer. Progress is not resent after a failed call, because newer progress replaces it.
  void AddProgress(v1::SynchronizeRequest& request);
  void AddMeasurements(v1::WorkerMeasurements& measurements);
  void Apply(const v1::SynchronizeResponse& response);

  // Tells the runner to drain and cancels downloads. From now on waiting for the server ends after
  // drain_timeout, or drain_stall after the last progress.
  void Drain();
  // Reason for the preemption of the lease; empty without one. A preempted session drains, and the
  // worker continues with another lease.
  std::string preemption();
  // Ends the session because the lease is lost: the runner gets Directive::kLost, and nothing more
  // is sent.
  void Abandon();
  bool lost() const { return outbox_.closed(); }

  // Time from the start of the session to the end of the first step; 0 before that.
  absl::Duration time_to_first_step() const {
    return absl::Nanoseconds(nanoseconds_to_first_step_.load());
  }

  // After the run: waits until the server has acknowledged everything, without a limit unless
  // draining. Returns false if the lease was lost or the drain ended first.
  bool Flush();
  // Stops the sender; unacknowledged items are not sent.
  void StopSending() { sender_.Stop(); }
  // Returns true if every trial has an acknowledged outcome or was cancelled.
  bool IsComplete() const;

 private:
  using Ask = std::function<absl::StatusOr<std::string>(const v1::DownloadArtifactRequest&)>;

  void Preempt(const std::string& reason);
  // Calls `ask` with a request for an artifact of the trial, and retries while the server is away.
  absl::StatusOr<std::string> Fetch(int64_t trial, absl::string_view sha256, absl::string_view what,
                                    const Ask& ask);

  struct Progress {
    v1::TrialProgress newest;
    bool sent = true;
  };

  const v1::Lease lease_;
  const Options options_;
  v1::WorkerService::StubInterface& stub_;
  ObjectTransfers& objects_;
  PackCapacities& capacities_;
  Outbox outbox_;
  CallGroup calls_;  // downloads
  const TimePoint start_ = After(absl::ZeroDuration());
  std::atomic<bool> draining_ = false;
  std::atomic<int64_t> nanoseconds_to_first_step_ = 0;
  platform::Mutex mutex_;
  std::vector<Progress> progress_ ABSL_GUARDED_BY(mutex_);
  std::string preemption_ ABSL_GUARDED_BY(mutex_);
  EventSender sender_;  // last member, so that it is destroyed first
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_LEASE_SESSION_H_
