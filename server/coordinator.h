// The heart of the server: every change of state goes through one thread, in groups of one store
// transaction each.
//
//   rpc handlers -> command queue -> [scheduler decides, storage records] -> commit -> answers,
//   watchers woken
//
// A command's answer is given after the transaction that holds its effects is durable. When a
// commit fails, all commands of its group are answered UNAVAILABLE and the scheduler's memory is
// rebuilt from the store.
#ifndef LENGTHWISE_SERVER_COORDINATOR_H_
#define LENGTHWISE_SERVER_COORDINATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "monitoring/worker_sample.h"
#include "proto/administration_service.pb.h"
#include "proto/event.pb.h"
#include "proto/experiment_service.pb.h"
#include "proto/fleet_service.pb.h"
#include "proto/worker_service.pb.h"
#include "server/coordination/artifacts.h"
#include "server/coordination/core_options.h"
#include "server/coordination/recent_pages.h"
#include "server/coordination/statistics.h"
#include "server/coordination/subscriptions.h"

namespace lengthwise::server {

// Thread-safe. Commands answer through a callback that runs on the coordinator's thread (or, when
// the coordinator is stopping, on the caller's, with UNAVAILABLE): it must not block. Reads run on
// the caller's thread and see what is committed. Errors of each method are those that the rpc of
// the same name documents.
class Coordinator {
 public:
  using Options = CoreOptions;
  using DecisionCounts = server::DecisionCounts;
  using RunningTrial = server::RunningTrial;
  using Statistics = server::Statistics;
  using ArtifactWriter = server::ArtifactWriter;
  using EventPage = server::EventPage;
  using Subscription = server::Subscription;
  template <typename T>
  using Callback = std::function<void(absl::StatusOr<T>)>;

  // Opens the data directory and goes on where the last server stopped: leases that were alive keep
  // their workers, with a full lease duration from now. FAILED_PRECONDITION when another server has
  // the directory open, or a backup is to go where something is; DATA_LOSS for a damaged database
  // or backup.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Open(const Options& options);
  virtual ~Coordinator() = default;

  // Finishes what is queued, refuses what comes after. Called by the destructor, too.
  virtual void Stop() = 0;

  // Commands. `caller` is who asks, for the histories of trials; empty: the experiment's owner. A
  // worker and its leases are its caller's: to others they are not there, or PERMISSION_DENIED.
  virtual void CreateExperiment(v1::CreateExperimentRequest request,
                                Callback<v1::CreateExperimentResponse> done) = 0;
  virtual void ExtendExperiment(v1::ExtendExperimentRequest request,
                                Callback<v1::ExtendExperimentResponse> done) = 0;
  virtual void EvaluateTrial(v1::EvaluateTrialRequest request,
                             Callback<v1::CreateExperimentResponse> done) = 0;
  virtual void CancelExperiment(v1::CancelExperimentRequest request, std::string caller,
                                Callback<v1::Experiment> done) = 0;
  virtual void RetryTrials(v1::RetryTrialsRequest request, std::string caller,
                           Callback<v1::RetryTrialsResponse> done) = 0;
  virtual void DeleteExperiment(v1::DeleteExperimentRequest request,
                                Callback<v1::DeleteExperimentResponse> done) = 0;
  virtual void CancelTrial(v1::CancelTrialRequest request, std::string caller,
                           Callback<v1::Trial> done) = 0;
  virtual void RegisterWorker(v1::RegisterWorkerRequest request, std::string caller,
                              Callback<v1::RegisterWorkerResponse> done) = 0;
  // `done` is called when there is a pack or after request.wait. `given_up` says whether the caller
  // has gone meanwhile: it gets no lease then, which would only expire. Cheap, does not block, on
  // any thread; not called any more once `done` was.
  virtual void AcquireLease(v1::AcquireLeaseRequest request, std::string caller,
                            std::function<bool()> given_up,
                            Callback<v1::AcquireLeaseResponse> done) = 0;
  virtual void Heartbeat(v1::HeartbeatRequest request, std::string caller,
                         Callback<v1::HeartbeatResponse> done) = 0;
  virtual void ReleaseLease(v1::ReleaseLeaseRequest request, std::string caller,
                            Callback<v1::ReleaseLeaseResponse> done) = 0;
  // Refusals are in the response; an error means the store cannot be written.
  virtual void StoreEvents(v1::StreamEventsRequest request, std::string caller,
                           Callback<v1::StreamEventsResponse> done) = 0;

  // Artifacts.
  virtual absl::StatusOr<std::unique_ptr<ArtifactWriter>> WriteArtifact(
      const v1::UploadArtifactRequest::Header& header, std::string caller) = 0;
  // Calls `take` with chunks of at most 1 MiB; stops early when it returns false.
  virtual absl::Status ReadArtifact(const v1::DownloadArtifactRequest& request,
                                    absl::string_view caller,
                                    const std::function<bool(absl::string_view)>& take) = 0;
  // Calls `take` with the responses of DownloadModel, in their order; stops early when it returns
  // false. UNAVAILABLE where the disk cannot be read.
  virtual absl::Status ReadModel(absl::string_view trial,
                                 const std::function<bool(v1::DownloadModelResponse)>& take) = 0;

  // Reads.
  virtual absl::StatusOr<v1::Experiment> GetExperiment(absl::string_view name) = 0;
  virtual absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const v1::ListExperimentsRequest& request) = 0;
  // The first answer for an experiment reads its results; later ones do not.
  virtual absl::StatusOr<v1::SummarizeExperimentResponse> SummarizeExperiment(
      const v1::SummarizeExperimentRequest& request) = 0;
  // The owner of an experiment, or of a trial's. NOT_FOUND.
  virtual absl::StatusOr<std::string> GetOwner(absl::string_view experiment_or_trial) = 0;
  virtual absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) = 0;
  virtual absl::StatusOr<v1::ListTrialsResponse> ListTrials(
      const v1::ListTrialsRequest& request) = 0;
  virtual v1::ListWorkersResponse ListWorkers() = 0;
  virtual Statistics GetStatistics() = 0;

  // Events of an experiment or of one trial from `start_position` on, at most `max_events` and
  // about 64 KiB, or one that is larger. NOT_FOUND.
  virtual absl::StatusOr<EventPage> ReadEvents(absl::string_view experiment_or_trial,
                                               int64_t start_position, int64_t max_events) = 0;
  // As ReadEvents, but only log lines and changes of state.
  virtual absl::StatusOr<EventPage> ReadLog(absl::string_view experiment_or_trial,
                                            int64_t start_position, int64_t max_events) = 0;
  // Calls `take` with the events of one kind (field number of Event's oneof) of an experiment or a
  // trial, in order of trials' index and then position. NOT_FOUND.
  virtual absl::Status ForEachEvent(absl::string_view experiment_or_trial, int fact_field_number,
                                    const std::function<void(const v1::Event&)>& take) = 0;

  // The newest progress of each trial that runs now, of an experiment or of one trial, of which
  // something was told after `since`, in the order in which it was told; at most `max_trials`.
  // `since` becomes where to go on; it starts as 0.
  virtual std::vector<v1::TrialProgress> ReadProgress(absl::string_view experiment_or_trial,
                                                      int64_t max_trials, int64_t& since) = 0;

  // Calls `wake` (on any thread; it must not block) whenever events of the experiment were
  // committed, its last trial ended, or it was deleted; and `progress` for each TrialProgress that
  // comes, when ReadProgress has it. Of a trial: what concerns its experiment. Ends when the
  // returned object is destroyed: after that neither is called.
  virtual std::unique_ptr<Subscription> Subscribe(
      absl::string_view experiment_or_trial, std::function<void()> wake,
      std::function<void(const v1::TrialProgress&)> progress) = 0;

  // Keeping the server. Both block, and read and write the disk.
  //
  // Copies database and artifacts to "{data_dir}/backups/{name}" while the server works on; tells
  // `progress`, last with `complete`, on the caller's thread. Stops with CANCELLED, leaving
  // nothing, when it returns false.
  virtual absl::Status BackUp(const v1::BackUpRequest& request,
                              const std::function<bool(const v1::BackUpResponse&)>& progress) = 0;
  virtual absl::StatusOr<v1::Storage> GetStorage() = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATOR_H_
