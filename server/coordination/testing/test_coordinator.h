// TestCoordinator: for tests. A real core on a real store, with a simple resolver, a clock that
// only moves when a test moves it or lets it run, and calls that wait for their answers.
#ifndef LENGTHWISE_SERVER_COORDINATION_TESTING_TEST_COORDINATOR_H_
#define LENGTHWISE_SERVER_COORDINATION_TESTING_TEST_COORDINATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "platform/version.h"
#include "server/coordination/core.h"

namespace lengthwise::server {

// One trial per learning rate and seed, with ids "lr<i>-seed<s>"; each learning rate is a pack.
// Refuses the name "wrong" and evaluations of length 0.
absl::StatusOr<specification::Grid> ResolveSimply(const v1::CreateExperimentRequest& request);

// Post a command to a core's loop. `done` is called as by the loop.
void PostExtend(Core& core, const v1::ExtendExperimentRequest& request,
                Done<v1::ExtendExperimentResponse> done);
void PostCancel(Core& core, const v1::CancelExperimentRequest& request, const std::string& caller,
                Done<v1::Experiment> done);
void PostRetry(Core& core, const v1::RetryTrialsRequest& request, const std::string& caller,
               Done<v1::RetryTrialsResponse> done);
void PostCall(Core& core, const v1::SynchronizeRequest& request, const std::string& caller,
              Done<v1::SynchronizeResponse> done);
void PostEvents(Core& core, const v1::StreamEventsRequest& request, const std::string& caller,
                Done<v1::StreamEventsResponse> done);

// Path of a directory that does not exist yet, for the running test or benchmark. Different at
// each call.
std::string NewDirectory();

class TestCoordinator {
 public:
  explicit TestCoordinator(std::string data_dir = NewDirectory(), int64_t max_database_bytes = 0,
                           GridResolver resolve = ResolveSimply);

  // Opens the core, or opens it again after Close. The loss of the database does not end the
  // process: see lost().
  absl::Status Open();
  void Close() { core_.reset(); }
  Core& operator*() { return *core_; }
  Core* operator->() { return core_.get(); }

  // Sets the wall clock without passing time. While the core is closed, this is all that the next
  // core sees of time, because its clock starts at the wall time.
  void SetWallClock(absl::Duration by);
  // Moves the clock and waits until the command loop has acted on it. The loop sees it move in
  // steps, as a loop that listens to its workers does.
  void Advance(absl::Duration time);
  // The same in one step: the process is stopped for this time.
  void Pause(absl::Duration time);
  // Moves the clock and does not wait. Any thread.
  void MoveClock(absl::Duration time) { *microseconds_ += absl::ToInt64Microseconds(time); }
  // From the next Open on, the clock runs like the system's.
  void RunClock() { start_ = absl::Now(); }

  // Creates an experiment of `rates` times `seeds` trials. Returns "experiments/<name>-<number>".
  std::string Create(const std::string& name, int rates, int seeds);
  absl::StatusOr<v1::CreateExperimentResponse> TryCreate(
      const v1::CreateExperimentRequest& request);
  // Adds seeds to an experiment.
  absl::StatusOr<v1::ExtendExperimentResponse> Extend(const std::string& name,
                                                      const std::vector<uint64_t>& seeds);
  absl::StatusOr<v1::ExtendExperimentResponse> Extend(const v1::ExtendExperimentRequest& request);
  absl::StatusOr<v1::CreateExperimentResponse> Evaluate(const v1::EvaluateTrialRequest& request);
  // The status, or the answer to a prepared submission.
  absl::StatusOr<v1::CreateExperimentResponse> Submit(const absl::StatusOr<Submission>& prepared);
  absl::StatusOr<v1::SummarizeExperimentResponse> Summarize(const std::string& name,
                                                            bool omit_lengths = false);
  absl::StatusOr<v1::Experiment> Cancel(const std::string& name, const std::string& reason = "");
  absl::StatusOr<v1::Trial> CancelTrial(const std::string& name);
  // As the user "ada".
  absl::StatusOr<v1::RetryTrialsResponse> Retry(const std::string& name,
                                                const std::vector<v1::TrialState>& states);
  absl::Status Delete(const std::string& name);
  absl::Status BackUp(const std::string& name);
  // `experiment` is the full name of the experiment that the worker is dedicated to.
  absl::Status Register(const std::string& worker, int32_t max_pack_size = 1,
                        const std::string& experiment = "",
                        int32_t api_version = platform::kWorkerApiVersion);
  // Makes the worker's last call.
  absl::Status Stop(const std::string& worker);
  // Returns the lease, or one without trials. Tells the server that it has arrived.
  v1::Lease Acquire(const std::string& worker);
  // A call of the worker, as Register has described it, in its session and with the next number.
  v1::SynchronizeRequest CallOf(const std::string& worker,
                                const std::vector<v1::Lease>& leases = {});
  // Queues the call, and returns the answer once it arrives.
  std::future<absl::StatusOr<v1::SynchronizeResponse>> Later(
      const v1::SynchronizeRequest& request, std::function<bool()> given_up = [] { return false; });
  // Sets the principal of workers' later calls. "anonymous" at first.
  void SetPrincipal(std::string principal) { principal_ = std::move(principal); }
  // Makes a call that lists the leases and reports progress of their trials.
  absl::StatusOr<v1::SynchronizeResponse> Heartbeat(const std::string& worker,
                                                    const std::vector<v1::Lease>& leases);
  // `unfit`: why the worker cannot run the lease. Empty: it drains.
  void Release(const std::string& worker, const v1::Lease& lease, const std::string& unfit = "");
  absl::StatusOr<v1::StreamEventsResponse> Send(const v1::Lease& lease,
                                                const std::vector<v1::Event>& events);
  absl::Status Upload(const v1::Lease& lease, int trial, int64_t step, const std::string& bytes);
  absl::StatusOr<std::string> Download(const v1::Lease& lease, int trial,
                                       const std::string& sha256);
  // The last events of a successful trial, with sequence numbers from `sequence` on: the checkpoint
  // of its last step, which this uploads, and the outcome.
  std::vector<v1::Event> Completion(const v1::Lease& lease, int trial, int64_t sequence,
                                    int64_t step);
  // Sends the final accuracies at lengths 1, 2, ... and the completion at `step`. Returns true if
  // everything was stored.
  bool Complete(const v1::Lease& lease, int trial, int64_t step,
                const std::vector<double>& accuracies);
  // All events of an experiment or a trial. The test fails if they cannot be read.
  std::vector<v1::Event> History(absl::string_view experiment);

  const std::string& data_dir() const { return options_.data_dir; }
  // Place of the checkpoints. A directory outside the data directory if the environment variable
  // LENGTHWISE_TEST_SHARED_PATH is set, an object store with LENGTHWISE_TEST_ON_S3, so that suites
  // run on all kinds of store.
  std::string artifacts_dir() const {
    return options_.artifacts.empty() ? options_.data_dir + "/artifacts" : options_.artifacts;
  }
  // Why a real server would have ended since Open: its database was lost to it. OK if it was not.
  absl::Status lost() const;
  // Used by the next Open.
  CoreOptions& options() { return options_; }
  void set_wrap_storage(
      std::function<std::unique_ptr<Storage>(std::unique_ptr<Storage>)> wrap_storage) {
    wrap_storage_ = std::move(wrap_storage);
  }
  void set_measure_disk(DiskReserve::Measure measure) { measure_disk_ = std::move(measure); }

 private:
  // Runs a command on the loop and waits for its answer. `bytes` as of CommandLoop::Post.
  template <typename Response>
  absl::StatusOr<Response> Do(std::function<absl::StatusOr<Response>()> apply, int64_t bytes = 0) {
    std::promise<absl::StatusOr<Response>> answer;
    core_->loop().Post<Response>(
        std::move(apply),
        [&answer](absl::StatusOr<Response> response) { answer.set_value(std::move(response)); },
        bytes);
    return answer.get_future().get();
  }
  CoreOptions options_;
  const int64_t max_database_bytes_;
  const GridResolver resolve_;
  std::string principal_ = "anonymous";
  std::map<std::string, v1::WorkerDescription> workers_;  // as they registered
  std::map<std::string, int64_t> sessions_;               // of their processes
  int64_t calls_ = 0;
  std::shared_ptr<std::atomic<int64_t>> microseconds_;
  std::shared_ptr<std::atomic<int64_t>> wall_ahead_;  // relative to the steady clock, microseconds
  std::optional<absl::Time> start_;                   // absent: the clock stands still
  struct Lost {
    platform::Mutex mutex;
    absl::Status status ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<Lost> lost_;
  DiskReserve::Measure measure_disk_ = platform::GetDiskSpace;
  std::function<std::unique_ptr<Storage>(std::unique_ptr<Storage>)> wrap_storage_;
  std::unique_ptr<Core> core_;
};

// Events of the lease's trial number `trial`, with sequence numbers from `sequence` on.
v1::Event PointsEvent(const v1::Lease& lease, int trial, int64_t sequence, int64_t step);
v1::Event CheckpointEvent(const v1::Lease& lease, int trial, int64_t sequence, int64_t step,
                          const std::string& bytes);
// Accuracies at lengths 1, 2, ...
v1::Event AccuraciesEvent(const v1::Lease& lease, int trial, int64_t sequence, int64_t step,
                          const std::vector<double>& accuracies, bool final = true);
v1::Event OutcomeEvent(const v1::Lease& lease, int trial, int64_t sequence, int64_t step,
                       v1::Outcome::Kind kind, const std::string& reason = "");

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_TESTING_TEST_COORDINATOR_H_
