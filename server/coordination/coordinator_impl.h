// The coordinator: a thread, a queue of commands, group commit, subscriptions, reads.
#ifndef LENGTHWISE_SERVER_COORDINATION_COORDINATOR_IMPL_H_
#define LENGTHWISE_SERVER_COORDINATION_COORDINATOR_IMPL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/files.h"
#include "platform/mutex.h"
#include "server/coordination/deferred_actions.h"
#include "server/coordination/disk_uses.h"
#include "server/coordination/engine.h"
#include "server/coordination/fleet.h"
#include "server/coordination/lease_ids.h"
#include "server/coordination/names.h"
#include "server/coordination/recent_pages.h"
#include "server/coordination/running_trials.h"
#include "server/coordination/subscriptions.h"
#include "server/coordination/summaries.h"
#include "server/coordinator.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"
#include "specification/resolve.h"

namespace lengthwise::server {

// Makes a grid of a request's source; runs on callers' threads.
using GridResolver =
    std::function<absl::StatusOr<specification::Grid>(const v1::CreateExperimentRequest&)>;

class CoordinatorImpl : public Coordinator {
 public:
  struct Dependencies {
    GridResolver resolve;
    Clock clock = SystemClock();
    // Largest size of the database, bytes; 0: no limit.
    int64_t max_database_bytes = 0;
    // Events and submissions that may wait for the store at a time, bytes; what comes beyond is
    // refused with UNAVAILABLE.
    int64_t max_queued_bytes = 256 << 20;
    // As in SqliteOptions. Empty: its default.
    std::function<void(const absl::Status&)> on_failed_sync;
  };

  // Errors of Coordinator::Open.
  static absl::StatusOr<std::unique_ptr<CoordinatorImpl>> Open(const Options& options,
                                                               Dependencies dependencies);
  ~CoordinatorImpl() override;
  void Stop() override;

  void CreateExperiment(v1::CreateExperimentRequest request,
                        Callback<v1::CreateExperimentResponse> done) override;
  void ExtendExperiment(v1::ExtendExperimentRequest request,
                        Callback<v1::ExtendExperimentResponse> done) override;
  void EvaluateTrial(v1::EvaluateTrialRequest request,
                     Callback<v1::CreateExperimentResponse> done) override;
  void CancelExperiment(v1::CancelExperimentRequest request, std::string caller,
                        Callback<v1::Experiment> done) override;
  void RetryTrials(v1::RetryTrialsRequest request, std::string caller,
                   Callback<v1::RetryTrialsResponse> done) override;
  void DeleteExperiment(v1::DeleteExperimentRequest request,
                        Callback<v1::DeleteExperimentResponse> done) override;
  void CancelTrial(v1::CancelTrialRequest request, std::string caller,
                   Callback<v1::Trial> done) override;
  void RegisterWorker(v1::RegisterWorkerRequest request, std::string caller,
                      Callback<v1::RegisterWorkerResponse> done) override;
  void AcquireLease(v1::AcquireLeaseRequest request, std::string caller,
                    std::function<bool()> given_up,
                    Callback<v1::AcquireLeaseResponse> done) override;
  void Heartbeat(v1::HeartbeatRequest request, std::string caller,
                 Callback<v1::HeartbeatResponse> done) override;
  void ReleaseLease(v1::ReleaseLeaseRequest request, std::string caller,
                    Callback<v1::ReleaseLeaseResponse> done) override;
  void StoreEvents(v1::StreamEventsRequest request, std::string caller,
                   Callback<v1::StreamEventsResponse> done) override;

  absl::StatusOr<std::unique_ptr<ArtifactWriter>> WriteArtifact(
      const v1::UploadArtifactRequest::Header& header, std::string caller) override;
  absl::Status ReadArtifact(const v1::DownloadArtifactRequest& request, absl::string_view caller,
                            const std::function<bool(absl::string_view)>& take) override;
  absl::Status ReadModel(absl::string_view trial,
                         const std::function<bool(v1::DownloadModelResponse)>& take) override;

  absl::StatusOr<v1::Experiment> GetExperiment(absl::string_view name) override;
  absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const v1::ListExperimentsRequest& request) override;
  absl::StatusOr<v1::SummarizeExperimentResponse> SummarizeExperiment(
      const v1::SummarizeExperimentRequest& request) override;
  absl::StatusOr<std::string> GetOwner(absl::string_view experiment_or_trial) override;
  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) override;
  absl::StatusOr<v1::ListTrialsResponse> ListTrials(const v1::ListTrialsRequest& request) override;
  v1::ListWorkersResponse ListWorkers() override;
  Statistics GetStatistics() override;
  absl::StatusOr<EventPage> ReadEvents(absl::string_view experiment_or_trial,
                                       int64_t start_position, int64_t max_events) override;
  absl::StatusOr<EventPage> ReadLog(absl::string_view experiment_or_trial, int64_t start_position,
                                    int64_t max_events) override;
  absl::Status ForEachEvent(absl::string_view experiment_or_trial, int fact_field_number,
                            const std::function<void(const v1::Event&)>& take) override;
  std::vector<v1::TrialProgress> ReadProgress(absl::string_view experiment_or_trial,
                                              int64_t max_trials, int64_t& since) override;
  std::unique_ptr<Subscription> Subscribe(
      absl::string_view experiment_or_trial, std::function<void()> wake,
      std::function<void(const v1::TrialProgress&)> progress) override;
  absl::Status BackUp(const v1::BackUpRequest& request,
                      const std::function<bool(const v1::BackUpResponse&)>& progress) override;
  absl::StatusOr<v1::Storage> GetStorage() override;

  // Waits until the thread has done what was posted before, and acted on an injected clock that was
  // moved.
  void Flush();

 private:
  class CheckedArtifactWriter;
  using Answer = std::function<void()>;

  struct Command {
    // Runs inside a transaction; what it returns runs after the commit. Nothing: answered later.
    std::function<Answer()> apply;
    std::function<void(absl::Status)> fail;
    int64_t bytes = 0;
    // Takes as long as many others: nothing else joins its group, so that none waits for two such.
    bool ends_group = false;
  };
  // A worker that waits for a pack.
  struct Waiter {
    std::string worker;
    // The principal that asked.
    std::string caller;
    absl::Time deadline;
    // Also set by a failed group, for a caller that waits no more.
    std::shared_ptr<bool> answered;
    Callback<v1::AcquireLeaseResponse> done;
    // As in AcquireLease.
    std::function<bool()> given_up;
    // The worker asked again: its caller gave this call up, whether or not that is known yet.
    bool superseded = false;
  };

  CoordinatorImpl(const Options& options, Dependencies dependencies,
                  std::unique_ptr<platform::FileLock> lock, std::unique_ptr<Storage> storage,
                  std::unique_ptr<ArtifactStore> artifacts);

  // Queues a command whose answer is what `apply` returns.
  template <typename T>
  void Post(int64_t bytes, std::function<absl::StatusOr<T>()> apply, Callback<T> done) {
    PostCommand({.apply = [apply = std::move(apply), done]() -> Answer {
                   auto result = std::make_shared<absl::StatusOr<T>>(apply());
                   return [done, result] { done(std::move(*result)); };
                 },
                 .fail = [done](absl::Status status) { done(std::move(status)); },
                 .bytes = bytes});
  }
  // Queues a command that is done in parts, each in a group of its own, until one returns an
  // answer.
  template <typename T>
  void PostParts(std::function<absl::StatusOr<std::optional<T>>()> part, Callback<T> done) {
    PostCommand({.apply = [this, part, done]() -> Answer {
                   auto result = std::make_shared<absl::StatusOr<std::optional<T>>>(part());
                   return [this, part, done, result] {
                     if (!result->ok()) return done(result->status());
                     if (!result->value().has_value()) return PostParts(part, done);
                     done(*std::move(result->value()));
                   };
                 },
                 .fail = [done](absl::Status status) { done(std::move(status)); },
                 .ends_group = true});
  }
  void PostCommand(Command command);

  // What the request asks for, resolved; on callers' threads.
  absl::StatusOr<Submission> PrepareEvaluation(const v1::EvaluateTrialRequest& request);
  absl::StatusOr<Extension> PrepareExtension(const v1::ExtendExperimentRequest& request,
                                             const ExperimentRecord& record,
                                             absl::string_view store);

  // On the coordinator's thread.
  void Run();
  std::vector<Command> TakeGroup(bool& last);
  void ProcessGroup(const std::vector<Command>& group);
  void ServeWaiters(std::vector<Answer>& answers, std::vector<Waiter>& served);
  // `commands` is the size of the group.
  void Publish(Effects effects, absl::Duration commit_time, size_t commands, bool changed);
  absl::Time NextDeadline();

  // NOT_FOUND with the name.
  absl::StatusOr<ExperimentRecord> FindExperiment(StorageReader& reader, absl::string_view name);
  absl::StatusOr<TrialRecord> FindTrial(StorageReader& reader, absl::string_view name);
  // What DownloadModel brings.
  struct NewestModel {
    v1::Checkpoint checkpoint;
    int64_t step = 0;
    ArtifactId artifact;
  };
  // NOT_FOUND: no such trial, or nothing is stored of it.
  absl::StatusOr<NewestModel> FindNewestModel(absl::string_view trial_name);

  // PERMISSION_DENIED unless the lease is the caller's and the trial's newest, and the trial runs.
  // NOT_FOUND.
  absl::StatusOr<TrialPath> CheckLease(absl::string_view trial, absl::string_view lease_id,
                                       int64_t token, absl::string_view caller);
  // What a queued trial waits for, and why it is queued again.
  std::string WhyWaiting(const TrialRecord& trial);
  absl::StatusOr<EventPage> ReadPage(absl::string_view experiment_or_trial, int64_t start_position,
                                     int64_t max_events, bool log_only);

  const Options options_;
  const Dependencies dependencies_;
  const std::unique_ptr<platform::FileLock> lock_;
  const std::unique_ptr<Storage> storage_;
  const std::unique_ptr<ArtifactStore> artifacts_;
  const LeaseIds lease_ids_;
  Fleet fleet_;
  Subscriptions subscriptions_;
  Summaries summaries_;
  RecentPages recent_pages_;
  RunningTrials running_trials_;
  DiskUses disk_uses_;
  // While a backup is made, artifacts are not deleted: it links those of the state it copies.
  DeferredActions deletions_;

  platform::Mutex engine_mutex_;  // not held while committing
  Engine engine_ ABSL_GUARDED_BY(engine_mutex_);

  // Of the coordinator's thread.
  std::list<Waiter> waiters_;
  bool broken_ = false;
  // The store may have space to give back.
  bool has_space_ = false;

  platform::Mutex queue_mutex_;
  platform::ConditionVariable queue_changed_;
  std::deque<Command> queue_ ABSL_GUARDED_BY(queue_mutex_);
  int64_t queued_bytes_ ABSL_GUARDED_BY(queue_mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(queue_mutex_) = false;

  platform::Mutex statistics_mutex_;
  Statistics statistics_ ABSL_GUARDED_BY(statistics_mutex_);

  platform::Mutex stop_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_COORDINATOR_IMPL_H_
