// Fakes WorkerService for tests: stores what workers send like the real server, and fails on
// request. The real server cannot be told to break a stream between storing a batch and
// acknowledging it, to hold acknowledgements, or to answer as a future release would; tests/faults
// and tests/end_to_end run workers against the real one.
#ifndef LENGTHWISE_WORKER_CONNECTION_TESTING_FAKE_WORKER_SERVICE_H_
#define LENGTHWISE_WORKER_CONNECTION_TESTING_FAKE_WORKER_SERVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"
#include "proto/worker_service.grpc.pb.h"

namespace lengthwise::worker {

// Stored state survives Stop and Start, like a database. Thread-safe.
class FakeWorkerService {
 public:
  // Fault of an event stream: it breaks after `stored` batches, of which only the first
  // `acknowledged` were acknowledged.
  struct StreamFault {
    int stored = 0;
    int acknowledged = 0;
  };

  // State that tests read and control, under the fake's lock.
  struct State {
    // Observed.
    std::vector<v1::WorkerDescription> registrations;  // one for each session, and while forgotten
    std::map<std::string, std::vector<v1::Event>> events;  // by trial, each sequence number once
    std::map<std::string, std::string> artifacts;          // by SHA-256
    // "upload TRIAL STEP" and "event TRIAL SEQUENCE", in the order of storing.
    std::vector<std::string> history;
    std::vector<v1::ReleasedLease> releases;    // once for each lease
    std::vector<v1::SynchronizeRequest> calls;  // in the order of sending
    int acquires = 0;                           // calls that want a lease
    int streams = 0;
    int uploads = 0;
    int downloads = 0;
    int duplicates = 0;  // events received again
    int refusals = 0;

    // Controlled.
    std::deque<v1::Lease> leases;  // to grant
    std::string no_lease_reason;   // in answers without a lease
    std::deque<StreamFault> stream_faults;
    int vanishing_batches = 0;            // number of next batches to ignore
    bool holds_acknowledgements = false;  // stores, but answers only once false
    std::set<std::string> stale_trials;
    int lost_artifacts = 0;    // number of next batches with artifacts to refuse as NOT_STORED
    int reported_gaps = 0;     // number of next batches to refuse as a SEQUENCE_GAP
    std::string invalid_text;  // a log line with this text makes its batch INVALID
    std::set<std::string> lost_leases;
    std::vector<std::string> cancelled_trials;
    std::map<std::string, std::string> preempted_leases;  // reason by lease
    std::deque<grpc::Status> call_failures;               // answers to the next Synchronize calls
    std::deque<grpc::Status> upload_failures;             // answers to the next uploads
    std::deque<grpc::Status> download_failures;           // and to downloads
    // Answers SignTransfer, outside the lock. Null: UNIMPLEMENTED, as a server without an object
    // store.
    std::function<grpc::Status(const v1::SignTransferRequest&, v1::SignTransferResponse&)>
        sign_transfer;
    bool damages_downloads = false;
    int transfers_with_deadline = 0;  // uploads and downloads
    absl::Duration upload_pause;      // before reading each message of an upload
    int64_t upload_parts = 0;         // messages of the uploads that were stored
    bool holds_uploads = false;       // uploads are not read until cancelled, or until false
    bool holds_downloads = false;     // downloads hang until cancelled, or until false
    bool is_registered = false;
    absl::Duration heartbeat_interval = absl::Milliseconds(10);
    absl::Duration lease_duration;  // 0: the worker does not wait
    // Holds each answer without directives for the wait that the worker allows, or until false.
    // Answers without the lease that the worker wants are always held.
    bool holds_answers = false;
    int held_answers = 0;  // currently held
    int64_t newest_call = 0;
  };

  FakeWorkerService();
  ~FakeWorkerService();

  // Listens on 127.0.0.1, on the port of the previous start (at first a free one).
  void Start();
  // Cancels all calls and closes the port.
  void Stop();
  std::string address() const;

  // Calls `function` with the state under the lock, and wakes all waiters.
  template <typename Function>
  auto With(Function function) {
    platform::MutexLock lock(mutex_);
    changed_.NotifyAll();
    return function(state_);
  }

  // Waits until `condition` holds. Returns false after 30 s.
  bool WaitUntil(const std::function<bool(const State&)>& condition);

 private:
  class Service;

  mutable platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  State state_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int port_ = 0;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_TESTING_FAKE_WORKER_SERVICE_H_
