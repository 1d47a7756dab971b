// What tests do to the coordinator and look at.
#include "server/services/fake_coordinator.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace lengthwise::server {

std::string FakeCoordinator::ExperimentOf(absl::string_view trial) {
  return std::string(trial.substr(0, trial.find("/trials/")));
}

absl::Status FakeCoordinator::NotFound(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("no ", name));
}

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
    ForgetProgress(trial, experiments_.at(name));
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

void FakeCoordinator::ForgetProgress(const std::string& trial, FakeExperiment& experiment) {
  std::erase_if(experiment.progress,
                [&](const auto& told) { return told.second.trial() == trial; });
}

void FakeCoordinator::SendProgress(const v1::TrialProgress& progress) {
  {
    platform::MutexLock lock(mutex_);
    FakeExperiment& experiment = experiments_.at(ExperimentOf(progress.trial()));
    ForgetProgress(progress.trial(), experiment);
    experiment.progress[++last_progress_] = progress;
  }
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
  std::deque<WaitingWorker> waiting;
  std::deque<std::function<void()>> held;
  {
    platform::MutexLock lock(mutex_);
    stopped_ = true;
    waiting.swap(waiting_);
    held.swap(held_);
  }
  for (const WaitingWorker& worker : waiting) {
    worker.done(absl::UnavailableError("the server is stopping"));
  }
  for (const auto& answer : held) answer();
}

int64_t FakeCoordinator::waiting_workers() {
  platform::MutexLock lock(mutex_);
  return static_cast<int64_t>(waiting_.size());
}

int64_t FakeCoordinator::given_up_workers() {
  platform::MutexLock lock(mutex_);
  return std::count_if(waiting_.begin(), waiting_.end(),
                       [](const WaitingWorker& worker) { return worker.given_up(); });
}

std::vector<int64_t> FakeCoordinator::stored() {
  platform::MutexLock lock(mutex_);
  return stored_;
}

std::vector<std::string> FakeCoordinator::worker_texts() {
  platform::MutexLock lock(mutex_);
  return worker_texts_;
}

void FakeCoordinator::set_backup(std::vector<v1::BackUpResponse> responses) {
  platform::MutexLock lock(mutex_);
  backup_ = std::move(responses);
}

void FakeCoordinator::set_storage(const v1::Storage& storage) {
  platform::MutexLock lock(mutex_);
  storage_ = storage;
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
