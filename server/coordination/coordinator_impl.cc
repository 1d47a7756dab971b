#include "server/coordination/coordinator_impl.h"

#include "platform/status_macros.h"

namespace lengthwise::server {

absl::StatusOr<std::unique_ptr<CoordinatorImpl>> CoordinatorImpl::Open(const Options& options,
                                                                       Dependencies dependencies) {
  ASSIGN_OR_RETURN(std::unique_ptr<Core> core, Core::Open(options, std::move(dependencies)));
  return std::unique_ptr<CoordinatorImpl>(new CoordinatorImpl(std::move(core)));
}

void CoordinatorImpl::CreateExperiment(v1::CreateExperimentRequest request,
                                       Callback<v1::CreateExperimentResponse> done) {
  absl::StatusOr<Submission> prepared = core_->submissions().PrepareCreation(std::move(request));
  if (!prepared.ok()) return done(prepared.status());
  const auto submission = std::make_shared<Submission>(*std::move(prepared));
  core_->loop().Post<v1::CreateExperimentResponse>(
      [this, submission] { return core_->submissions().Create(*submission); }, std::move(done),
      submission->bytes());
}

void CoordinatorImpl::ExtendExperiment(v1::ExtendExperimentRequest request,
                                       Callback<v1::ExtendExperimentResponse> done) {
  absl::StatusOr<Extension> prepared = core_->submissions().PrepareExtension(request);
  if (!prepared.ok()) return done(prepared.status());
  const auto extension = std::make_shared<Extension>(*std::move(prepared));
  const int64_t bytes = extension->bytes();
  core_->loop().Post<v1::ExtendExperimentResponse>(
      [this, extension] { return core_->submissions().Extend(std::move(*extension)); },
      std::move(done), bytes);
}

void CoordinatorImpl::EvaluateTrial(v1::EvaluateTrialRequest request,
                                    Callback<v1::CreateExperimentResponse> done) {
  absl::StatusOr<Submission> prepared = core_->submissions().PrepareEvaluation(request);
  if (!prepared.ok()) return done(prepared.status());
  const auto submission = std::make_shared<Submission>(*std::move(prepared));
  core_->loop().Post<v1::CreateExperimentResponse>(
      [this, submission] { return core_->submissions().Evaluate(*submission); }, std::move(done));
}

void CoordinatorImpl::CancelExperiment(v1::CancelExperimentRequest request, std::string caller,
                                       Callback<v1::Experiment> done) {
  core_->loop().PostParts<v1::Experiment>(
      [this, request = std::move(request), caller = std::move(caller),
       parts = std::make_shared<Parts>()] {
        return core_->experiments().Cancel(request, caller, *parts);
      },
      std::move(done));
}

void CoordinatorImpl::RetryTrials(v1::RetryTrialsRequest request, std::string caller,
                                  Callback<v1::RetryTrialsResponse> done) {
  core_->loop().PostParts<v1::RetryTrialsResponse>(
      [this, request = std::move(request), caller = std::move(caller),
       parts = std::make_shared<Parts>()] {
        return core_->experiments().RetryTrials(request, caller, *parts);
      },
      std::move(done));
}

void CoordinatorImpl::DeleteExperiment(v1::DeleteExperimentRequest request,
                                       Callback<v1::DeleteExperimentResponse> done) {
  core_->loop().Post<v1::DeleteExperimentResponse>(
      [this, request = std::move(request)] { return core_->experiments().Delete(request); },
      std::move(done));
}

void CoordinatorImpl::CancelTrial(v1::CancelTrialRequest request, std::string caller,
                                  Callback<v1::Trial> done) {
  core_->loop().Post<v1::Trial>(
      [this, request = std::move(request), caller = std::move(caller)] {
        return core_->experiments().CancelTrial(request, caller);
      },
      std::move(done));
}

void CoordinatorImpl::RegisterWorker(v1::RegisterWorkerRequest request, std::string caller,
                                     Callback<v1::RegisterWorkerResponse> done) {
  core_->loop().Post<v1::RegisterWorkerResponse>(
      [this, request = std::move(request), caller = std::move(caller)] {
        return core_->leases().Register(request, caller);
      },
      std::move(done));
}

void CoordinatorImpl::AcquireLease(v1::AcquireLeaseRequest request, std::string caller,
                                   std::function<bool()> given_up,
                                   Callback<v1::AcquireLeaseResponse> done) {
  core_->loop().AcquireLease(std::move(request), std::move(caller), std::move(given_up),
                             std::move(done));
}

void CoordinatorImpl::Heartbeat(v1::HeartbeatRequest request, std::string caller,
                                Callback<v1::HeartbeatResponse> done) {
  core_->loop().Post<v1::HeartbeatResponse>(
      [this, request = std::move(request), caller = std::move(caller)] {
        return core_->leases().Heartbeat(request, caller);
      },
      std::move(done));
}

void CoordinatorImpl::ReleaseLease(v1::ReleaseLeaseRequest request, std::string caller,
                                   Callback<v1::ReleaseLeaseResponse> done) {
  core_->loop().Post<v1::ReleaseLeaseResponse>(
      [this, request = std::move(request), caller = std::move(caller)] {
        return core_->leases().Release(request, caller);
      },
      std::move(done));
}

void CoordinatorImpl::StoreEvents(v1::StreamEventsRequest request, std::string caller,
                                  Callback<v1::StreamEventsResponse> done) {
  const int64_t bytes = static_cast<int64_t>(request.ByteSizeLong());
  core_->loop().Post<v1::StreamEventsResponse>(
      [this, request = std::move(request), caller = std::move(caller)] {
        return core_->intake().Store(request, caller);
      },
      std::move(done), bytes);
}

}  // namespace lengthwise::server
