// What clients and workers change.
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/services/fake_coordinator.h"

namespace lengthwise::server {

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

void FakeCoordinator::RegisterWorker(v1::RegisterWorkerRequest request, std::string caller,
                                     Callback<v1::RegisterWorkerResponse> done) {
  {
    platform::MutexLock lock(mutex_);
    worker_texts_.push_back(request.worker().provenance().device());
  }
  v1::RegisterWorkerResponse response;
  response.mutable_lease_duration()->set_seconds(30);
  done(std::move(response));
}

void FakeCoordinator::AcquireLease(v1::AcquireLeaseRequest request, std::string caller,
                                   std::function<bool()> given_up,
                                   Callback<v1::AcquireLeaseResponse> done) {
  if (request.wait().seconds() > 0) {
    {
      platform::MutexLock lock(mutex_);
      waiting_.push_back({std::move(given_up), std::move(done)});
    }
    return Changed();
  }
  v1::AcquireLeaseResponse response;
  response.set_no_lease_reason("no trials are queued");
  done(std::move(response));
}

void FakeCoordinator::Heartbeat(v1::HeartbeatRequest request, std::string caller,
                                Callback<v1::HeartbeatResponse> done) {
  done(absl::NotFoundError(absl::StrCat("worker ", request.worker_id(), " is not registered")));
}

void FakeCoordinator::ReleaseLease(v1::ReleaseLeaseRequest request, std::string caller,
                                   Callback<v1::ReleaseLeaseResponse> done) {
  {
    platform::MutexLock lock(mutex_);
    worker_texts_.push_back(request.reason());
  }
  done(v1::ReleaseLeaseResponse());
}

void FakeCoordinator::StoreEvents(v1::StreamEventsRequest request, std::string caller,
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
    for (const v1::Event& event : request.events()) {
      if (event.has_log_line()) worker_texts_.push_back(event.log_line().text());
    }
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

absl::StatusOr<std::unique_ptr<Coordinator::ArtifactWriter>> FakeCoordinator::WriteArtifact(
    const v1::UploadArtifactRequest::Header& header, std::string caller) {
  if (header.fencing_token() == 0) return absl::PermissionDeniedError("stale fencing token 0");
  return std::make_unique<FakeWriter>(*this, header.sha256());
}

}  // namespace lengthwise::server
