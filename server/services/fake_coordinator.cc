#include "server/services/fake_coordinator.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::server {
namespace {

std::string ExperimentOf(absl::string_view trial) {
  return std::string(trial.substr(0, trial.find("/trials/")));
}

absl::Status NotFound(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("no ", name));
}

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

class FakeCoordinator::FakeWriter : public ArtifactWriter {
 public:
  FakeWriter(FakeCoordinator& coordinator, std::string sha256)
      : coordinator_(coordinator), sha256_(std::move(sha256)) {
    Count(1);
  }
  ~FakeWriter() override { Count(-1); }
  absl::Status Append(absl::string_view data) override {
    absl::StrAppend(&bytes_, data);
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    coordinator_.PutArtifact(sha256_, bytes_);
    return absl::OkStatus();
  }

 private:
  void Count(int64_t change) {
    {
      platform::MutexLock lock(coordinator_.mutex_);
      coordinator_.open_writers_ += change;
    }
    coordinator_.Changed();
  }

  FakeCoordinator& coordinator_;
  const std::string sha256_;
  std::string bytes_;
};

void FakeCoordinator::AddExperiment(const std::string& name, int trials) {
  platform::MutexLock lock(mutex_);
  FakeExperiment& experiment = experiments_[name];
  for (int i = 0; i < trials; ++i) {
    v1::Trial& trial = experiment.trials.emplace_back();
    trial.set_name(absl::StrCat(name, "/trials/t", i));
    trial.set_index(i);
    trial.set_state(v1::RUNNING);
  }
}

void FakeCoordinator::SetOwner(const std::string& name, const std::string& owner) {
  platform::MutexLock lock(mutex_);
  experiments_.at(name).owner = owner;
}

int64_t FakeCoordinator::Append(v1::Event event) {
  const std::string name = ExperimentOf(event.trial());
  int64_t position;
  {
    platform::MutexLock lock(mutex_);
    position = next_position_++;
    event.set_position(position);
    experiments_.at(name).events.push_back(std::move(event));
  }
  Wake(name);
  return position;
}

void FakeCoordinator::EndTrial(const std::string& trial, v1::TrialState state) {
  const std::string name = ExperimentOf(trial);
  {
    platform::MutexLock lock(mutex_);
    for (v1::Trial& candidate : experiments_.at(name).trials) {
      if (candidate.name() == trial) candidate.set_state(state);
    }
  }
  Wake(name);
}

void FakeCoordinator::Remove(const std::string& name) {
  {
    platform::MutexLock lock(mutex_);
    experiments_.erase(name);
  }
  Wake(name);
}

void FakeCoordinator::SendProgress(const v1::TrialProgress& progress) {
  platform::MutexLock lock(watchers_mutex_);
  for (auto& [key, watcher] : watchers_) {
    if (watcher.experiment == ExperimentOf(progress.trial())) watcher.progress(progress);
  }
}

void FakeCoordinator::set_page_limit(int64_t events) {
  platform::MutexLock lock(mutex_);
  page_limit_ = events;
}

void FakeCoordinator::HoldAnswers() {
  platform::MutexLock lock(mutex_);
  hold_ = true;
}

void FakeCoordinator::ReleaseAnswers(bool last_first) {
  std::deque<std::function<void()>> held;
  {
    platform::MutexLock lock(mutex_);
    held.swap(held_);
  }
  if (last_first) std::reverse(held.begin(), held.end());
  for (const std::function<void()>& answer : held) answer();
}

void FakeCoordinator::FailNextStore(absl::Status status) {
  platform::MutexLock lock(mutex_);
  next_store_ = std::move(status);
}

void FakeCoordinator::set_statistics(const Statistics& statistics) {
  platform::MutexLock lock(mutex_);
  statistics_ = statistics;
}

void FakeCoordinator::set_summary(const v1::SummarizeExperimentResponse& summary) {
  platform::MutexLock lock(mutex_);
  summary_ = summary;
}

void FakeCoordinator::PutArtifact(const std::string& sha256, std::string bytes) {
  platform::MutexLock lock(mutex_);
  artifacts_[sha256] = std::move(bytes);
}

void FakeCoordinator::PutModel(const std::string& trial, int64_t step, std::string bytes) {
  platform::MutexLock lock(mutex_);
  models_[trial] = {step, std::move(bytes)};
}

int64_t FakeCoordinator::held_answers() {
  platform::MutexLock lock(mutex_);
  return static_cast<int64_t>(held_.size() + waiting_.size());
}

int64_t FakeCoordinator::subscriptions() {
  platform::MutexLock lock(watchers_mutex_);
  return static_cast<int64_t>(watchers_.size());
}

int64_t FakeCoordinator::reads() {
  platform::MutexLock lock(mutex_);
  return reads_;
}

int64_t FakeCoordinator::open_writers() {
  platform::MutexLock lock(mutex_);
  return open_writers_;
}

std::vector<v1::CreateExperimentRequest> FakeCoordinator::created() {
  platform::MutexLock lock(mutex_);
  return created_;
}

std::vector<v1::CancelExperimentRequest> FakeCoordinator::cancellations() {
  platform::MutexLock lock(mutex_);
  return cancellations_;
}

std::vector<std::string> FakeCoordinator::cancellers() {
  platform::MutexLock lock(mutex_);
  return cancellers_;
}

std::vector<v1::EvaluateTrialRequest> FakeCoordinator::evaluated() {
  platform::MutexLock lock(mutex_);
  return evaluated_;
}

std::map<std::string, std::string> FakeCoordinator::artifacts() {
  platform::MutexLock lock(mutex_);
  return artifacts_;
}

bool FakeCoordinator::WaitFor(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (true) {
    int64_t seen;
    {
      platform::MutexLock lock(mutex_);
      seen = changes_;
    }
    if (condition()) return true;
    platform::MutexLock lock(mutex_);
    while (changes_ == seen) {
      if (!changed_.WaitUntil(mutex_, deadline)) return false;
    }
  }
}

void FakeCoordinator::Stop() {
  std::deque<Callback<v1::AcquireLeaseResponse>> waiting;
  std::deque<std::function<void()>> held;
  {
    platform::MutexLock lock(mutex_);
    stopped_ = true;
    waiting.swap(waiting_);
    held.swap(held_);
  }
  for (const auto& done : waiting) done(absl::UnavailableError("the server is stopping"));
  for (const auto& answer : held) answer();
}

void FakeCoordinator::CreateExperiment(v1::CreateExperimentRequest request,
                                       Callback<v1::CreateExperimentResponse> done) {
  v1::CreateExperimentResponse response;
  {
    platform::MutexLock lock(mutex_);
    created_.push_back(request);
    response.mutable_experiment()->set_name(
        absl::StrCat("experiments/", request.specification().name(), "-", created_.size()));
  }
  done(std::move(response));
}

void FakeCoordinator::ExtendExperiment(v1::ExtendExperimentRequest request,
                                       Callback<v1::ExtendExperimentResponse> done) {
  if (!GetExperiment(request.name()).ok()) return done(NotFound(request.name()));
  v1::ExtendExperimentResponse response;
  {
    platform::MutexLock lock(mutex_);
    std::vector<v1::Trial>& trials = experiments_.at(request.name()).trials;
    for (int i = 0; i < request.seeds_size(); ++i) {
      const int32_t index = static_cast<int32_t>(trials.size());
      v1::Trial& trial = trials.emplace_back();
      trial.set_name(absl::StrCat(request.name(), "/trials/t", index));
      trial.set_index(index);
      trial.set_state(v1::RUNNING);
    }
  }
  response.set_added_trials(request.seeds_size());
  *response.mutable_experiment() = *GetExperiment(request.name());
  Wake(request.name());
  done(std::move(response));
}

void FakeCoordinator::EvaluateTrial(v1::EvaluateTrialRequest request,
                                    Callback<v1::CreateExperimentResponse> done) {
  if (!GetTrial(request.trial()).ok()) return done(NotFound(request.trial()));
  v1::CreateExperimentResponse response;
  {
    platform::MutexLock lock(mutex_);
    evaluated_.push_back(std::move(request));
    response.mutable_experiment()->set_name(
        absl::StrCat("experiments/evaluation-", evaluated_.size()));
  }
  done(std::move(response));
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

void FakeCoordinator::CancelExperiment(v1::CancelExperimentRequest request, std::string caller,
                                       Callback<v1::Experiment> done) {
  {
    platform::MutexLock lock(mutex_);
    cancellations_.push_back(request);
    cancellers_.push_back(std::move(caller));
  }
  done(GetExperiment(request.name()));
}

void FakeCoordinator::RetryTrials(v1::RetryTrialsRequest request, std::string caller,
                                  Callback<v1::RetryTrialsResponse> done) {
  const std::string name = ExperimentOf(request.name());
  if (!GetExperiment(name).ok()) return done(NotFound(request.name()));
  v1::RetryTrialsResponse response;
  response.mutable_experiment()->set_name(name);
  {
    platform::MutexLock lock(mutex_);
    for (v1::Trial& trial : experiments_.at(name).trials) {
      const bool named = request.name() == name || request.name() == trial.name();
      const auto& states = request.states();
      if (!named || std::count(states.begin(), states.end(), trial.state()) == 0) continue;
      trial.set_state(v1::RUNNING);
      response.set_retried_trials(response.retried_trials() + 1);
    }
  }
  Wake(name);
  done(std::move(response));
}

void FakeCoordinator::DeleteExperiment(v1::DeleteExperimentRequest request,
                                       Callback<v1::DeleteExperimentResponse> done) {
  if (!GetExperiment(request.name()).ok()) return done(NotFound(request.name()));
  Remove(request.name());
  done(v1::DeleteExperimentResponse());
}

void FakeCoordinator::CancelTrial(v1::CancelTrialRequest request, std::string caller,
                                  Callback<v1::Trial> done) {
  done(absl::FailedPreconditionError(absl::StrCat(request.name(), " ended already")));
}

void FakeCoordinator::RegisterWorker(v1::RegisterWorkerRequest request,
                                     Callback<v1::RegisterWorkerResponse> done) {
  v1::RegisterWorkerResponse response;
  response.mutable_lease_duration()->set_seconds(30);
  done(std::move(response));
}

void FakeCoordinator::AcquireLease(v1::AcquireLeaseRequest request,
                                   Callback<v1::AcquireLeaseResponse> done) {
  if (request.wait().seconds() > 0) {
    {
      platform::MutexLock lock(mutex_);
      waiting_.push_back(std::move(done));
    }
    return Changed();
  }
  v1::AcquireLeaseResponse response;
  response.set_no_lease_reason("no trials are queued");
  done(std::move(response));
}

void FakeCoordinator::Heartbeat(v1::HeartbeatRequest request,
                                Callback<v1::HeartbeatResponse> done) {
  done(absl::NotFoundError(absl::StrCat("worker ", request.worker_id(), " is not registered")));
}

void FakeCoordinator::ReleaseLease(v1::ReleaseLeaseRequest request,
                                   Callback<v1::ReleaseLeaseResponse> done) {
  done(v1::ReleaseLeaseResponse());
}

void FakeCoordinator::StoreEvents(v1::StreamEventsRequest request,
                                  Callback<v1::StreamEventsResponse> done) {
  absl::StatusOr<v1::StreamEventsResponse> result = v1::StreamEventsResponse();
  result->set_lease_id(request.lease_id());
  if (!request.events().empty()) {
    result->set_trial(request.events().rbegin()->trial());
    result->set_acknowledged_sequence(request.events().rbegin()->sequence());
  }
  // Whoever calls at the same time is let in first.
  std::this_thread::yield();
  bool held = false;
  {
    platform::MutexLock lock(mutex_);
    if (result.ok()) stored_.push_back(result->acknowledged_sequence());
    if (stopped_) {
      result = absl::UnavailableError("the server is stopping");
    } else if (!next_store_.ok()) {
      result = std::exchange(next_store_, absl::OkStatus());
    }
    if (hold_ && !stopped_) {
      held_.push_back([done, result] { done(result); });
      held = true;
    }
  }
  if (held) return Changed();
  done(std::move(result));
}

absl::StatusOr<std::unique_ptr<Coordinator::ArtifactWriter>> FakeCoordinator::WriteArtifact(
    const v1::UploadArtifactRequest::Header& header) {
  if (header.fencing_token() == 0) return absl::PermissionDeniedError("stale fencing token 0");
  return std::make_unique<FakeWriter>(*this, header.sha256());
}

absl::Status FakeCoordinator::ReadArtifact(const v1::DownloadArtifactRequest& request,
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

std::unique_ptr<Coordinator::Subscription> FakeCoordinator::Subscribe(
    absl::string_view experiment_or_trial, std::function<void()> wake,
    std::function<void(const v1::TrialProgress&)> progress) {
  auto subscription = std::make_unique<FakeSubscription>(*this);
  platform::MutexLock lock(watchers_mutex_);
  watchers_[subscription.get()] =
      Watcher{ExperimentOf(experiment_or_trial), std::move(wake), std::move(progress)};
  return subscription;
}

std::vector<int64_t> FakeCoordinator::stored() {
  platform::MutexLock lock(mutex_);
  return stored_;
}

void FakeCoordinator::set_backup(std::vector<v1::BackUpResponse> responses) {
  platform::MutexLock lock(mutex_);
  backup_ = std::move(responses);
}

void FakeCoordinator::set_storage(const v1::Storage& storage) {
  platform::MutexLock lock(mutex_);
  storage_ = storage;
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

void FakeCoordinator::Wake(const std::string& experiment) {
  platform::MutexLock lock(watchers_mutex_);
  for (auto& [key, watcher] : watchers_) {
    if (watcher.experiment == experiment) watcher.wake();
  }
}

void FakeCoordinator::Changed() {
  platform::MutexLock lock(mutex_);
  ++changes_;
  changed_.NotifyAll();
}

}  // namespace lengthwise::server
