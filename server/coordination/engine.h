// What each command does to the scheduler and the store: one thread, no queue, no waiting. A group
// of commands is applied between Begin and Commit; what must wait for the commit (waking watchers,
// deleting files) is collected in Effects.
#ifndef LENGTHWISE_SERVER_COORDINATION_ENGINE_H_
#define LENGTHWISE_SERVER_COORDINATION_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/experiment_service.pb.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/fleet.h"
#include "server/coordination/lease_ids.h"
#include "server/coordination/running_trials.h"
#include "server/coordinator.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"
#include "specification/resolve.h"

namespace lengthwise::server {

// Two clocks: `steady` never jumps and decides about leases, `wall` is what histories show.
struct Clock {
  std::function<absl::Time()> steady;
  std::function<absl::Time()> wall;
};
// The machine's. Its steady clock starts at the wall's time.
Clock SystemClock();

// What follows a commit.
struct Effects {
  absl::flat_hash_set<std::string> experiments;  // ids of those whose history grew or ended
  // Keys of trials that are in another state, by experiment id.
  absl::btree_map<std::string, absl::btree_set<int64_t>> trials;
  // Ids of experiments that have other trials than before, or are gone.
  absl::flat_hash_set<std::string> reshaped;
  std::vector<WorkerProgress> progress;
  std::vector<std::function<void()>> actions;
  // Instead of all that, when the commit failed: takes back what is not in the store.
  std::vector<std::function<void()>> reversals;
  int64_t events = 0;
  int64_t points = 0;
  int64_t lease_expiries = 0;
  Coordinator::DecisionCounts decided;
  std::vector<int32_t> granted;  // trials of each lease that was granted
  // Trials that began to run or do so no more, and what running ones measured (by name).
  std::vector<RunningChange> running;
  std::vector<std::pair<std::string, v1::LengthAccuracies>> evaluations;
};

// A command about many trials, which others do not wait for: each call is a part of it, in a
// transaction of its own.
struct Parts {
  // Trials of a part: a few milliseconds.
  size_t trials_at_once = 200;
  // Keys of the trials; from the first part on.
  std::optional<std::vector<int64_t>> trials;
  // Place in `trials` of the first that is left.
  size_t next = 0;
  // Trials that were changed.
  int32_t changed = 0;

  // The trials of the next part.
  absl::Span<const int64_t> Take() {
    const auto part = absl::MakeConstSpan(*trials).subspan(next, trials_at_once);
    next += part.size();
    return part;
  }
  bool AtEnd() const { return next == trials->size(); }
};

// A grid on its way into the store.
struct Submission {
  // All but key, id, counts.
  ExperimentRecord experiment;
  specification::Grid grid;
};

// More trials on their way into an experiment.
struct Extension {
  // The experiment's specification when this was made, and the one with the trials in it.
  std::string base;
  std::string specification;
  std::vector<specification::GridTrial> added;
};
using MakeExtension = std::function<absl::StatusOr<Extension>(const ExperimentRecord&)>;

// Not thread-safe. Errors other than of the store leave everything as it was; after an error of the
// store Commit fails, and Rebuild must follow.
class Engine {
 public:
  struct Options {
    Scheduler::Options scheduler;
    absl::Duration heartbeat_interval = absl::Seconds(1);
    // Of one owner; 0 for no limit.
    int64_t max_unended_trials = 0;
  };

  // All must outlive it. Rebuild comes first.
  Engine(const Options& options, Storage& storage, ArtifactStore& artifacts, Fleet& fleet,
         Clock clock);

  // Makes the scheduler from what the store has. Registered workers stay registered.
  absl::Status Rebuild();

  absl::Status Begin();
  absl::Status Commit();
  bool HasChanges() const { return writer_.HasChanges(); }
  // What has gathered since the last call.
  Effects TakeEffects() { return std::exchange(effects_, Effects()); }

  absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(const Submission& submission);
  // What CreateExperiment would answer, without a name.
  static absl::StatusOr<v1::CreateExperimentResponse> Preview(const Submission& submission);
  // Makes the extension anew where another one came between.
  absl::StatusOr<v1::ExtendExperimentResponse> ExtendExperiment(const std::string& id,
                                                                Extension extension,
                                                                const MakeExtension& make);
  // `submission` has one trial, whose evaluated_trial it is about; or none, if it can only be the
  // repetition of a request.
  absl::StatusOr<v1::CreateExperimentResponse> EvaluateTrial(const Submission& submission);
  // `caller` is who asks; empty: the experiment's owner. nullopt: `parts` are left, in the next
  // transactions.
  absl::StatusOr<std::optional<v1::Experiment>> CancelExperiment(
      const v1::CancelExperimentRequest& request, const std::string& caller, Parts& parts);
  absl::StatusOr<std::optional<v1::RetryTrialsResponse>> RetryTrials(
      const v1::RetryTrialsRequest& request, const std::string& caller, Parts& parts);
  absl::StatusOr<v1::DeleteExperimentResponse> DeleteExperiment(
      const v1::DeleteExperimentRequest& request);
  absl::StatusOr<v1::Trial> CancelTrial(const v1::CancelTrialRequest& request,
                                        const std::string& caller);

  // `caller` is the principal that a worker and its leases belong to. PERMISSION_DENIED: they are
  // another's.
  absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request, const std::string& caller);
  // NOT_FOUND: the worker is not registered.
  absl::Status CheckWorker(absl::string_view worker, absl::string_view caller);
  // Grants at once, or answers without lease and reason. UNAVAILABLE: so many checkpoints could not
  // be read that no more were tried.
  absl::StatusOr<v1::AcquireLeaseResponse> AcquireLease(const std::string& worker,
                                                        const std::string& caller);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request,
                                                  const std::string& caller);
  absl::StatusOr<v1::ReleaseLeaseResponse> ReleaseLease(const v1::ReleaseLeaseRequest& request,
                                                        const std::string& caller);
  absl::StatusOr<v1::StreamEventsResponse> StoreEvents(const v1::StreamEventsRequest& request,
                                                       const std::string& caller);

  // Ends leases whose time is over.
  absl::Status Tick();

  Scheduler& scheduler() { return *scheduler_; }
  absl::Time Now() const { return clock_.steady(); }

 private:
  // Read and checked in a fraction of a second. Who waits for the engine, waits for that; of what
  // is larger, a worker finds out when it fetches it, on that call's thread.
  static constexpr int64_t kMostBytesToCheck = int64_t{64} << 20;

  // Stores decisions: trials, leases, changes of state as events that belong to `step` (-1: the
  // trial's checkpoint). `outcome` is what the trial that succeeds told.
  absl::Status Record(const Decisions& decisions, int64_t step = -1,
                      const v1::Outcome* outcome = nullptr);
  absl::Status RecordChange(const TrialChange& change, int64_t step, const v1::Outcome* outcome);
  absl::Status Append(const TrialRecord& trial, v1::Event event);
  // Queues a trial again that has ended.
  Decisions Retry(const TrialRecord& trial, const ExperimentRecord& experiment,
                  const std::string& pack_key, const std::string& caller);
  absl::StatusOr<TrialRecord> GetTrial(int64_t key);

  // What the first request with the submission's id created; nullopt when this is the first.
  // ALREADY_EXISTS: it asked for something else.
  absl::StatusOr<std::optional<v1::CreateExperimentResponse>> FindRepeated(
      const ExperimentRecord& submitted);
  // RESOURCE_EXHAUSTED with a google.rpc.RetryInfo where `added` trials more are too many for an
  // owner.
  absl::Status CheckQuota(const std::string& owner, int64_t added);
  // Keys of the trials that have ended in one of the states: of an experiment, or the one that is
  // named.
  absl::StatusOr<std::vector<int64_t>> FindEnded(const v1::RetryTrialsRequest& request,
                                                 const ExperimentRecord& experiment,
                                                 const std::string& trial_id);
  // Inserts and queues trials with indices from `first_index` on, and the packs that `packs` (keys
  // by pack key) lacks.
  absl::Status InsertTrials(const ExperimentRecord& experiment,
                            absl::Span<const specification::GridTrial> trials, int32_t first_index,
                            absl::flat_hash_map<std::string, int64_t> packs,
                            absl::string_view reason);
  // The checkpoint of a trial that has succeeded. NOT_FOUND, FAILED_PRECONDITION.
  struct StoredModel {
    ArtifactId artifact;
    v1::Checkpoint checkpoint;
    int64_t step = 0;
  };
  absl::StatusOr<StoredModel> FindModel(absl::string_view trial_name);

  absl::StatusOr<v1::Lease> MakeLease(const Decisions& decisions, absl::string_view caller);
  // What was found of trials that are to be leased.
  enum class Found {
    kUsable,
    // Something is lost: they changed, and others may be next.
    kChanged,
    // Something cannot be read now: they wait a while, and others may be next.
    kUnreadable,
  };
  // Makes sure that the pack's specification can be read; otherwise its trials fail.
  absl::StatusOr<Found> CheckSpecification(const std::vector<TrialKey>& pack);
  // Makes sure that the trial's checkpoint can be used. One that is lost is passed over for the one
  // before, or the start, which the trial's history tells; a trial that only evaluates has no start
  // to go back to, and fails.
  absl::StatusOr<Found> CheckCheckpoint(int64_t trial);
  // The event of the trial's checkpoint at its checkpoint step; position 0 for the start.
  absl::StatusOr<EventRecord> CheckpointEvent(const TrialRecord& trial);

  // Deletes, after the commit, what the specification does not keep of a trial that has ended; a
  // trial of which nothing is kept has no checkpoint any more.
  absl::Status Retain(TrialRecord& trial);
  // Empty, or why the attempt may not send these checkpoints or this outcome.
  static std::string ModelProblem(const TrialRecord& trial, const v1::StreamEventsRequest& request,
                                  int64_t last_sequence);
  // Empty, or why the attempt may not send these log lines.
  absl::StatusOr<std::string> LogProblem(const TrialRecord& trial,
                                         const v1::StreamEventsRequest& request,
                                         int64_t last_sequence);

  absl::Status StoreNewEvents(TrialRecord& trial, const v1::StreamEventsRequest& request,
                              int64_t last_sequence);
  absl::Status StoreCheckpoint(TrialRecord& trial, int64_t step);

  const Options options_;
  Storage& storage_;
  StorageWriter& writer_;
  ArtifactStore& artifacts_;
  Fleet& fleet_;
  const LeaseIds lease_ids_;
  const Clock clock_;
  std::unique_ptr<Scheduler> scheduler_;
  Effects effects_;
  // Waiting trials whose stored time is of another clock, with the right one.
  std::vector<TrialRecord> misdated_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_ENGINE_H_
