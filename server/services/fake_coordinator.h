// A coordinator in memory for tests of the services: experiments, trials and events are put in by
// the test, commands are recorded and answered at once, or when the test says so.
#ifndef LENGTHWISE_SERVER_SERVICES_FAKE_COORDINATOR_H_
#define LENGTHWISE_SERVER_SERVICES_FAKE_COORDINATOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "platform/mutex.h"
#include "server/coordinator.h"

namespace lengthwise::server {

class FakeCoordinator : public Coordinator {
 public:
  ~FakeCoordinator() override { Stop(); }

  // What tests do to it.

  // "experiments/{id}" with trials "t0", "t1", ...
  void AddExperiment(const std::string& name, int trials);
  // Whose it is; "anonymous" until this says so.
  void SetOwner(const std::string& name, const std::string& owner);
  // Appends to the log at the next position and wakes watchers. `event.trial` is
  // "{experiment}/trials/{id}".
  int64_t Append(v1::Event event);
  void EndTrial(const std::string& trial, v1::TrialState state = v1::SUCCEEDED);
  // Removes the experiment as DeleteExperiment does.
  void Remove(const std::string& name);
  void SendProgress(const v1::TrialProgress& progress);
  // Makes pages smaller than asked for.
  void set_page_limit(int64_t events);
  // From now on StoreEvents keeps its answers until ReleaseAnswers.
  void HoldAnswers();
  // Answers the `count` newest held requests first to last, or last to first.
  void ReleaseAnswers(bool last_first);
  // The next StoreEvents fails so.
  void FailNextStore(absl::Status status);
  void set_statistics(const Statistics& statistics);
  void set_summary(const v1::SummarizeExperimentResponse& summary);
  void PutArtifact(const std::string& sha256, std::string bytes);
  // The trial's stored model.
  void PutModel(const std::string& trial, int64_t step, std::string bytes);
  void set_backup(std::vector<v1::BackUpResponse> responses);
  void set_storage(const v1::Storage& storage);

  // What tests look at.
  int64_t held_answers();
  // Last sequence numbers of the requests of StoreEvents, in the order of their arrival.
  std::vector<int64_t> stored();
  // Free text that workers sent: devices of registrations, reasons of releases, lines of logs.
  std::vector<std::string> worker_texts();
  int64_t subscriptions();
  int64_t reads();
  int64_t open_writers();
  // Calls of AcquireLease that wait, and those of them that were given up.
  int64_t waiting_workers();
  int64_t given_up_workers();
  std::vector<v1::CreateExperimentRequest> created();
  std::vector<v1::EvaluateTrialRequest> evaluated();
  std::vector<v1::CancelExperimentRequest> cancellations();
  // Who asked for them.
  std::vector<std::string> cancellers();
  std::map<std::string, std::string> artifacts();
  // Waits until `condition` holds (it is checked after every change and may call the methods
  // above), or fails after 30 s.
  bool WaitFor(const std::function<bool()>& condition);

  // Coordinator.
  void Stop() override;
  void CreateExperiment(v1::CreateExperimentRequest request,
                        Callback<v1::CreateExperimentResponse> done) override;
  // Adds a trial for each seed.
  void ExtendExperiment(v1::ExtendExperimentRequest request,
                        Callback<v1::ExtendExperimentResponse> done) override;
  // Answers as if "experiments/evaluation-{number}" had been created.
  void EvaluateTrial(v1::EvaluateTrialRequest request,
                     Callback<v1::CreateExperimentResponse> done) override;
  void CancelExperiment(v1::CancelExperimentRequest request, std::string caller,
                        Callback<v1::Experiment> done) override;
  // Makes the trials that are in one of the states RUNNING, as new trials are.
  void RetryTrials(v1::RetryTrialsRequest request, std::string caller,
                   Callback<v1::RetryTrialsResponse> done) override;
  void DeleteExperiment(v1::DeleteExperimentRequest request,
                        Callback<v1::DeleteExperimentResponse> done) override;
  void CancelTrial(v1::CancelTrialRequest request, std::string caller,
                   Callback<v1::Trial> done) override;
  void RegisterWorker(v1::RegisterWorkerRequest request, std::string caller,
                      Callback<v1::RegisterWorkerResponse> done) override;
  // Answers when the coordinator stops, unless `wait` is zero.
  void AcquireLease(v1::AcquireLeaseRequest request, std::string caller,
                    std::function<bool()> given_up,
                    Callback<v1::AcquireLeaseResponse> done) override;
  void Heartbeat(v1::HeartbeatRequest request, std::string caller,
                 Callback<v1::HeartbeatResponse> done) override;
  void ReleaseLease(v1::ReleaseLeaseRequest request, std::string caller,
                    Callback<v1::ReleaseLeaseResponse> done) override;
  // Acknowledges the last sequence number of the request.
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
  // What set_summary set, for every experiment that there is; without lengths if so asked.
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
  // Tells what set_backup set, one response a call; "taken" is there already.
  absl::Status BackUp(const v1::BackUpRequest& request,
                      const std::function<bool(const v1::BackUpResponse&)>& progress) override;
  absl::StatusOr<v1::Storage> GetStorage() override;

 private:
  struct FakeExperiment {
    std::string owner = "anonymous";
    std::vector<v1::Trial> trials;
    std::vector<v1::Event> events;
    // Of trials that have not ended, in the order in which they were told.
    std::map<int64_t, v1::TrialProgress> progress;
  };
  struct Watcher {
    std::string experiment;
    std::function<void()> wake;
    std::function<void(const v1::TrialProgress&)> progress;
  };
  struct WaitingWorker {
    std::function<bool()> given_up;
    Callback<v1::AcquireLeaseResponse> done;
  };
  class FakeSubscription;
  class FakeWriter;

  // The experiment's name of a trial's, or of its own.
  static std::string ExperimentOf(absl::string_view trial);
  static absl::Status NotFound(absl::string_view name);

  absl::StatusOr<EventPage> ReadPage(absl::string_view name, int64_t start_position,
                                     int64_t max_events, bool log_only);
  static void ForgetProgress(const std::string& trial, FakeExperiment& experiment);
  void Wake(const std::string& experiment);
  void Changed();

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, FakeExperiment, std::less<>> experiments_ ABSL_GUARDED_BY(mutex_);
  int64_t next_position_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t last_progress_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t page_limit_ ABSL_GUARDED_BY(mutex_) = 1'000'000;
  int64_t open_writers_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> held_ ABSL_GUARDED_BY(mutex_);
  std::deque<WaitingWorker> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Status next_store_ ABSL_GUARDED_BY(mutex_);
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);
  v1::SummarizeExperimentResponse summary_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CreateExperimentRequest> created_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::EvaluateTrialRequest> evaluated_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CancelExperimentRequest> cancellations_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> cancellers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> artifacts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::pair<int64_t, std::string>, std::less<>> models_
      ABSL_GUARDED_BY(mutex_);
  std::vector<v1::BackUpResponse> backup_ ABSL_GUARDED_BY(mutex_);
  v1::Storage storage_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> stored_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> worker_texts_ ABSL_GUARDED_BY(mutex_);

  // Held while watchers are called, so that a subscription's end waits for a call under way.
  platform::Mutex watchers_mutex_;
  std::map<const FakeSubscription*, Watcher> watchers_ ABSL_GUARDED_BY(watchers_mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_FAKE_COORDINATOR_H_
