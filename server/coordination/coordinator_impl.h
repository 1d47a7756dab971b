// The Coordinator over the core.
#ifndef LENGTHWISE_SERVER_COORDINATION_COORDINATOR_IMPL_H_
#define LENGTHWISE_SERVER_COORDINATION_COORDINATOR_IMPL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/coordination/core.h"
#include "server/coordinator.h"

namespace lengthwise::server {

class CoordinatorImpl : public Coordinator {
 public:
  using Dependencies = Core::Dependencies;

  // Errors of Coordinator::Open.
  static absl::StatusOr<std::unique_ptr<CoordinatorImpl>> Open(const Options& options,
                                                               Dependencies dependencies);
  ~CoordinatorImpl() override { Stop(); }
  void Stop() override { core_->Stop(); }

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
      const v1::UploadArtifactRequest::Header& header, std::string caller) override {
    return core_->artifacts().Write(header, std::move(caller));
  }
  absl::Status ReadArtifact(const v1::DownloadArtifactRequest& request, absl::string_view caller,
                            const std::function<bool(absl::string_view)>& take) override {
    return core_->artifacts().Read(request, caller, take);
  }
  absl::Status ReadModel(absl::string_view trial,
                         const std::function<bool(v1::DownloadModelResponse)>& take) override {
    return core_->artifacts().ReadModel(trial, take);
  }

  absl::StatusOr<v1::Experiment> GetExperiment(absl::string_view name) override {
    return core_->reads().GetExperiment(name);
  }
  absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const v1::ListExperimentsRequest& request) override {
    return core_->reads().ListExperiments(request);
  }
  absl::StatusOr<v1::SummarizeExperimentResponse> SummarizeExperiment(
      const v1::SummarizeExperimentRequest& request) override {
    return core_->reads().SummarizeExperiment(request);
  }
  absl::StatusOr<std::string> GetOwner(absl::string_view experiment_or_trial) override {
    return core_->reads().GetOwner(experiment_or_trial);
  }
  absl::StatusOr<v1::Trial> GetTrial(absl::string_view name) override {
    return core_->reads().GetTrial(name);
  }
  absl::StatusOr<v1::ListTrialsResponse> ListTrials(const v1::ListTrialsRequest& request) override {
    return core_->reads().ListTrials(request);
  }
  v1::ListWorkersResponse ListWorkers() override { return core_->reads().ListWorkers(); }
  Statistics GetStatistics() override { return core_->GetStatistics(); }
  absl::StatusOr<EventPage> ReadEvents(absl::string_view experiment_or_trial,
                                       int64_t start_position, int64_t max_events) override {
    return core_->event_log().ReadEvents(experiment_or_trial, start_position, max_events);
  }
  absl::StatusOr<EventPage> ReadLog(absl::string_view experiment_or_trial, int64_t start_position,
                                    int64_t max_events) override {
    return core_->event_log().ReadLog(experiment_or_trial, start_position, max_events);
  }
  absl::Status ForEachEvent(absl::string_view experiment_or_trial, int fact_field_number,
                            const std::function<void(const v1::Event&)>& take) override {
    return core_->event_log().ForEachEvent(experiment_or_trial, fact_field_number, take);
  }
  std::vector<v1::TrialProgress> ReadProgress(absl::string_view experiment_or_trial,
                                              int64_t max_trials, int64_t& since) override {
    return core_->event_log().ReadProgress(experiment_or_trial, max_trials, since);
  }
  std::unique_ptr<Subscription> Subscribe(
      absl::string_view experiment_or_trial, std::function<void()> wake,
      std::function<void(const v1::TrialProgress&)> progress) override {
    return core_->event_log().Subscribe(experiment_or_trial, std::move(wake), std::move(progress));
  }
  absl::Status BackUp(const v1::BackUpRequest& request,
                      const std::function<bool(const v1::BackUpResponse&)>& progress) override {
    return core_->backups().BackUp(request, progress);
  }
  absl::StatusOr<v1::Storage> GetStorage() override { return core_->backups().GetStorage(); }

  // Waits until the thread has done what was posted before, and acted on an injected clock that was
  // moved.
  void Flush() { core_->loop().Flush(); }

 private:
  explicit CoordinatorImpl(std::unique_ptr<Core> core) : core_(std::move(core)) {}

  const std::unique_ptr<Core> core_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_COORDINATOR_IMPL_H_
