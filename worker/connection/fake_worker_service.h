// A WorkerService for tests: keeps what workers send as the real server would, and fails on
// request.
#ifndef LENGTHWISE_WORKER_CONNECTION_FAKE_WORKER_SERVICE_H_
#define LENGTHWISE_WORKER_CONNECTION_FAKE_WORKER_SERVICE_H_

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

// Thread-safe. What it stored survives Stop and Start, as a database would.
class FakeWorkerService {
 public:
  // A stream of events that goes wrong: after `stored` batches it is cut off, and only the first
  // `acknowledged` of them were acknowledged.
  struct StreamFault {
    int stored = 0;
    int acknowledged = 0;
  };

  // What tests look at and steer, under the server's lock.
  struct State {
    // Seen.
    std::vector<v1::WorkerDescription> registrations;
    std::map<std::string, std::vector<v1::Event>> events;  // by trial, each sequence number once
    std::map<std::string, std::string> artifacts;          // by SHA-256
    // "upload TRIAL STEP" and "event TRIAL SEQUENCE", in the order in which they were stored.
    std::vector<std::string> history;
    std::vector<v1::ReleaseLeaseRequest> releases;
    std::vector<v1::HeartbeatRequest> heartbeats;
    int acquires = 0;
    int streams = 0;
    int downloads = 0;
    int duplicates = 0;  // events that came again
    int refusals = 0;

    // Steered.
    std::deque<v1::Lease> leases;  // to hand out
    std::deque<StreamFault> stream_faults;
    int vanishing_batches = 0;            // the next batches are neither stored nor answered
    bool holds_acknowledgements = false;  // stores, and answers only when false again
    std::set<std::string> stale_trials;
    std::string invalid_text;  // a log line with this text makes its batch INVALID
    std::set<std::string> lost_leases;
    std::vector<std::string> cancelled_trials;
    std::map<std::string, std::string> preempted_leases;  // why, by lease
    std::deque<grpc::Status> acquire_failures;            // answers of the next calls for a lease
    std::deque<grpc::Status> heartbeat_failures;
    std::deque<grpc::Status> upload_failures;    // answers of the next uploads
    std::deque<grpc::Status> download_failures;  // and downloads
    std::deque<grpc::Status> registration_failures;
    bool damages_downloads = false;
    absl::Duration upload_pause;   // before each message of an upload is taken
    bool holds_downloads = false;  // ends none before the caller does, or this is false again
    bool is_registered = false;
    absl::Duration heartbeat_interval = absl::Milliseconds(10);
    absl::Duration next_heartbeat_interval;  // in answers to heartbeats; zero: none is said
    absl::Duration lease_duration;           // of registrations; zero: none is said
    // Holds each answer that has no directive for the worker's wait, or until this is false again.
    bool holds_heartbeats = false;
    int held_heartbeats = 0;  // now
  };

  FakeWorkerService();
  ~FakeWorkerService();

  // On 127.0.0.1, on the port of the last start (a free one at first).
  void Start();
  // Ends all calls and closes the port.
  void Stop();
  std::string address() const;

  // Reads or changes the state under the lock; wakes everyone who waits for a change of it.
  template <typename Function>
  auto With(Function function) {
    platform::MutexLock lock(mutex_);
    changed_.NotifyAll();
    return function(state_);
  }

  // Waits until the state fulfils the condition; false after 30 s.
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

#endif  // LENGTHWISE_WORKER_CONNECTION_FAKE_WORKER_SERVICE_H_
