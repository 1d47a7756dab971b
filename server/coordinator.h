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

namespace lengthwise::server {

// Thread-safe. Commands answer through a callback that runs on the coordinator's thread (or, when
// the coordinator is stopping, on the caller's, with UNAVAILABLE): it must not block. Reads run on
// the caller's thread and see what is committed. Errors of each method are those that the rpc of
// the same name documents.
class Coordinator {
 public:
  struct Options {
    // Directory of the database and the artifacts; made if it is missing.
    std::string data_dir;
    // A backup's directory, which becomes the data directory before it is opened; that must then be
    // missing or empty. Empty: none.
    std::string restore_from;
    // A lease ends when no heartbeat came for so long.
    absl::Duration lease_duration = absl::Seconds(30);
    absl::Duration heartbeat_interval = absl::Seconds(1);
    // Attempts that may fail temporarily before a trial is FAILED. Expired and released leases do
    // not count.
    int32_t max_failed_attempts = 3;
    // A lease is not preempted for a higher priority before it has run so long.
    absl::Duration preempt_after = absl::Minutes(1);
    // Trials of an experiment.
    int64_t max_trials = 100'000;
    // Queued and running trials of one owner; 0 for no limit.
    int64_t max_unended_trials = 1'000'000;
    // Largest artifact accepted, bytes.
    int64_t max_artifact_bytes = int64_t{8} << 30;
  };

  // By what a metric's label says.
  struct DecisionCounts {
    std::map<std::string, int64_t> decisions;
    std::map<std::string, int64_t> retries;   // of trials, by why they are queued again
    std::map<std::string, int64_t> failures;  // of trials that have failed for good
  };
  // A trial that runs now.
  struct RunningTrial {
    std::string experiment_id;
    std::string trial_id;
    std::string worker;
    std::string task;
    std::string network;
    std::string encoding;
    // The newest of this attempt; empty before the first.
    v1::TrialProgress progress;
    // Means of the newest evaluation: over the unseen lengths, where it had some, and by range of
    // lengths (at most 20 of them).
    std::optional<double> unseen_accuracy;
    std::map<std::string, double> accuracies;
  };
  // What the monitoring reads. Counts are those of this process; the state is that of now.
  struct Statistics {
    v1::TrialCounts trials;  // over all experiments
    // The 500 that run longest, and their experiments' counts by id.
    std::vector<RunningTrial> running_trials;
    std::map<std::string, v1::TrialCounts> running_experiments;
    int64_t leases = 0;
    int64_t lease_expiries = 0;
    v1::Histogram lease_trials;  // sizes of the leases that were granted
    DecisionCounts decided;
    // Since the trial was queued that has been so for longest; 0 when none is.
    double oldest_queued_seconds = 0;
    std::vector<monitoring::WorkerSample> workers;  // live ones, by id
    int64_t events_stored = 0;
    int64_t points_stored = 0;  // points of loss curves
    // Of transactions that changed something: seconds, commands that they answered, and events.
    v1::Histogram commit_seconds;
    v1::Histogram commit_commands;
    v1::Histogram commit_events;
    int64_t commit_failures = 0;
    int64_t database_bytes = 0;
    // Of the data directory's file system; 0 where it does not say.
    int64_t disk_free_bytes = 0;
    int64_t disk_size_bytes = 0;
  };

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

  // Artifacts. A writer takes the bytes of one upload; what is not finished is dropped with it.
  class ArtifactWriter {
   public:
    virtual ~ArtifactWriter() = default;
    virtual absl::Status Append(absl::string_view data) = 0;
    // Verifies size and checksum, makes the artifact durable.
    virtual absl::Status Finish() = 0;
  };
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

  struct EventPage {
    std::vector<v1::Event> events;  // ascending positions
    // Where the next page starts.
    int64_t next_position = 0;
    // Nothing committed lies beyond this page, and this many trials have not ended.
    bool at_end = false;
    int64_t unfinished_trials = 0;
  };
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
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
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
