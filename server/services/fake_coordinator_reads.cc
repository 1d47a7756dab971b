// What clients and workers read.
#include <algorithm>

#include "server/services/fake_coordinator.h"

namespace lengthwise::server {
namespace {

bool Ended(const v1::Trial& trial) { return trial.state() >= v1::SUCCEEDED; }

}  // namespace

class FakeCoordinator::FakeSubscription : public Subscription {
 public:
  explicit FakeSubscription(FakeCoordinator& coordinator) : coordinator_(coordinator) {}
  ~FakeSubscription() override {
    {
      platform::MutexLock lock(coordinator_.watchers_mutex_);
      coordinator_.watchers_.erase(this);
    }
    coordinator_.Changed();
  }

 private:
  FakeCoordinator& coordinator_;
};

absl::Status FakeCoordinator::ReadArtifact(const v1::DownloadArtifactRequest& request,
                                           absl::string_view caller,
                                           const std::function<bool(absl::string_view)>& take) {
  const std::map<std::string, std::string> all = artifacts();
  const auto found = all.find(request.sha256());
  if (found == all.end()) return NotFound(request.sha256());
  constexpr size_t kChunk = 1 << 20;
  for (size_t i = 0; i < found->second.size(); i += kChunk) {
    if (!take(absl::string_view(found->second).substr(i, kChunk))) break;
  }
  return absl::OkStatus();
}

absl::Status FakeCoordinator::ReadModel(
    absl::string_view trial, const std::function<bool(v1::DownloadModelResponse)>& take) {
  std::pair<int64_t, std::string> model;
  {
    platform::MutexLock lock(mutex_);
    const auto found = models_.find(trial);
    if (found == models_.end()) return NotFound(trial);
    model = found->second;
  }
  v1::DownloadModelResponse first;
  first.set_step(model.first);
  first.mutable_checkpoint()->set_size_bytes(static_cast<int64_t>(model.second.size()));
  if (!take(std::move(first))) return absl::OkStatus();
  constexpr size_t kChunk = 1 << 20;
  for (size_t i = 0; i < model.second.size(); i += kChunk) {
    v1::DownloadModelResponse part;
    part.set_data(model.second.substr(i, kChunk));
    if (!take(std::move(part))) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Experiment> FakeCoordinator::GetExperiment(absl::string_view name) {
  platform::MutexLock lock(mutex_);
  if (experiments_.find(name) == experiments_.end()) return NotFound(name);
  v1::Experiment experiment;
  experiment.set_name(std::string(name));
  return experiment;
}

absl::StatusOr<v1::ListExperimentsResponse> FakeCoordinator::ListExperiments(
    const v1::ListExperimentsRequest& request) {
  platform::MutexLock lock(mutex_);
  v1::ListExperimentsResponse response;
  for (const auto& [name, experiment] : experiments_) response.add_experiments()->set_name(name);
  return response;
}

absl::StatusOr<v1::SummarizeExperimentResponse> FakeCoordinator::SummarizeExperiment(
    const v1::SummarizeExperimentRequest& request) {
  platform::MutexLock lock(mutex_);
  if (!experiments_.contains(request.name())) return NotFound(request.name());
  v1::SummarizeExperimentResponse response = summary_;
  if (!request.omit_lengths()) return response;
  for (auto& cell : *response.mutable_cells()) {
    cell.clear_lengths();
    cell.clear_mean_accuracies();
  }
  return response;
}

absl::StatusOr<std::string> FakeCoordinator::GetOwner(absl::string_view experiment_or_trial) {
  platform::MutexLock lock(mutex_);
  const auto found = experiments_.find(ExperimentOf(experiment_or_trial));
  if (found == experiments_.end()) return NotFound(experiment_or_trial);
  return found->second.owner;
}

absl::StatusOr<v1::Trial> FakeCoordinator::GetTrial(absl::string_view name) {
  platform::MutexLock lock(mutex_);
  const auto found = experiments_.find(ExperimentOf(name));
  if (found == experiments_.end()) return NotFound(name);
  for (const v1::Trial& trial : found->second.trials) {
    if (trial.name() == name) return trial;
  }
  return NotFound(name);
}

absl::StatusOr<v1::ListTrialsResponse> FakeCoordinator::ListTrials(
    const v1::ListTrialsRequest& request) {
  platform::MutexLock lock(mutex_);
  const auto found = experiments_.find(request.parent());
  if (found == experiments_.end()) return NotFound(request.parent());
  v1::ListTrialsResponse response;
  for (const v1::Trial& trial : found->second.trials) *response.add_trials() = trial;
  return response;
}

v1::ListWorkersResponse FakeCoordinator::ListWorkers() {
  v1::ListWorkersResponse response;
  response.add_workers()->set_worker_id("n07-cpu-1");
  return response;
}

Coordinator::Statistics FakeCoordinator::GetStatistics() {
  platform::MutexLock lock(mutex_);
  return statistics_;
}

absl::StatusOr<Coordinator::EventPage> FakeCoordinator::ReadEvents(
    absl::string_view experiment_or_trial, int64_t start_position, int64_t max_events) {
  return ReadPage(experiment_or_trial, start_position, max_events, /*log_only=*/false);
}

absl::StatusOr<Coordinator::EventPage> FakeCoordinator::ReadLog(
    absl::string_view experiment_or_trial, int64_t start_position, int64_t max_events) {
  return ReadPage(experiment_or_trial, start_position, max_events, /*log_only=*/true);
}

absl::StatusOr<Coordinator::EventPage> FakeCoordinator::ReadPage(absl::string_view name,
                                                                 int64_t start_position,
                                                                 int64_t max_events,
                                                                 bool log_only) {
  EventPage page;
  {
    platform::MutexLock lock(mutex_);
    ++reads_;
    const auto found = experiments_.find(ExperimentOf(name));
    if (found == experiments_.end()) return NotFound(name);
    const auto wanted = [&](absl::string_view trial) {
      return name == found->first || name == trial;
    };
    page.next_position = start_position;
    page.at_end = true;
    for (const v1::Event& event : found->second.events) {
      if (event.position() < start_position || !wanted(event.trial())) continue;
      if (log_only && !event.has_log_line() && !event.has_state_change()) continue;
      if (static_cast<int64_t>(page.events.size()) == std::min(max_events, page_limit_)) {
        page.at_end = false;
        break;
      }
      page.events.push_back(event);
      page.next_position = event.position() + 1;
    }
    page.unfinished_trials = std::count_if(
        found->second.trials.begin(), found->second.trials.end(),
        [&](const v1::Trial& trial) { return wanted(trial.name()) && !Ended(trial); });
  }
  Changed();
  return page;
}

absl::Status FakeCoordinator::ForEachEvent(absl::string_view experiment_or_trial,
                                           int fact_field_number,
                                           const std::function<void(const v1::Event&)>& take) {
  platform::MutexLock lock(mutex_);
  const auto found = experiments_.find(ExperimentOf(experiment_or_trial));
  if (found == experiments_.end()) return NotFound(experiment_or_trial);
  bool any = false;
  for (const v1::Trial& trial : found->second.trials) {
    if (experiment_or_trial != found->first && trial.name() != experiment_or_trial) continue;
    any = true;
    for (const v1::Event& event : found->second.events) {
      if (event.trial() == trial.name() && event.fact_case() == fact_field_number) take(event);
    }
  }
  return any ? absl::OkStatus() : NotFound(experiment_or_trial);
}

std::vector<v1::TrialProgress> FakeCoordinator::ReadProgress(absl::string_view experiment_or_trial,
                                                             int64_t max_trials, int64_t& since) {
  platform::MutexLock lock(mutex_);
  std::vector<v1::TrialProgress> newest;
  const auto found = experiments_.find(ExperimentOf(experiment_or_trial));
  if (found == experiments_.end()) return newest;
  for (const auto& [number, progress] : found->second.progress) {
    const bool wanted =
        experiment_or_trial == found->first || experiment_or_trial == progress.trial();
    if (number <= since || !wanted) continue;
    if (static_cast<int64_t>(newest.size()) == max_trials) break;
    newest.push_back(progress);
    since = number;
  }
  return newest;
}

std::unique_ptr<Coordinator::Subscription> FakeCoordinator::Subscribe(
    absl::string_view experiment_or_trial, std::function<void()> wake,
    std::function<void(const v1::TrialProgress&)> progress) {
  auto subscription = std::make_unique<FakeSubscription>(*this);
  platform::MutexLock lock(watchers_mutex_);
  watchers_[subscription.get()] =
      Watcher{ExperimentOf(experiment_or_trial), std::move(wake), std::move(progress)};
  return subscription;
}

absl::Status FakeCoordinator::BackUp(
    const v1::BackUpRequest& request,
    const std::function<bool(const v1::BackUpResponse&)>& progress) {
  if (request.name() == "taken") return absl::AlreadyExistsError("there is a backup \"taken\"");
  std::vector<v1::BackUpResponse> responses;
  {
    platform::MutexLock lock(mutex_);
    responses = backup_;
  }
  for (const v1::BackUpResponse& response : responses) {
    if (!progress(response)) return absl::CancelledError("given up");
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Storage> FakeCoordinator::GetStorage() {
  platform::MutexLock lock(mutex_);
  return storage_;
}

}  // namespace lengthwise::server
