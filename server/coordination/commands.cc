// The coordinator's commands, but for those that submit trials (submissions.cc): each becomes an
// entry of the queue.
#include <algorithm>
#include <memory>
#include <utility>

#include "google/protobuf/util/time_util.h"
#include "server/coordination/coordinator_impl.h"

namespace lengthwise::server {
namespace {

constexpr absl::Duration kMaxAcquireWait = absl::Seconds(60);

}  // namespace

void CoordinatorImpl::CancelExperiment(v1::CancelExperimentRequest request, std::string caller,
                                       Callback<v1::Experiment> done) {
  PostParts<v1::Experiment>(
      [this, request = std::move(request), caller = std::move(caller),
       parts = std::make_shared<Parts>()] {
        return engine_.CancelExperiment(request, caller, *parts);
      },
      std::move(done));
}

void CoordinatorImpl::RetryTrials(v1::RetryTrialsRequest request, std::string caller,
                                  Callback<v1::RetryTrialsResponse> done) {
  PostParts<v1::RetryTrialsResponse>(
      [this, request = std::move(request), caller = std::move(caller),
       parts = std::make_shared<Parts>()] { return engine_.RetryTrials(request, caller, *parts); },
      std::move(done));
}

void CoordinatorImpl::DeleteExperiment(v1::DeleteExperimentRequest request,
                                       Callback<v1::DeleteExperimentResponse> done) {
  Post<v1::DeleteExperimentResponse>(
      0, [this, request = std::move(request)] { return engine_.DeleteExperiment(request); },
      std::move(done));
}

void CoordinatorImpl::CancelTrial(v1::CancelTrialRequest request, std::string caller,
                                  Callback<v1::Trial> done) {
  Post<v1::Trial>(
      0,
      [this, request = std::move(request), caller = std::move(caller)] {
        return engine_.CancelTrial(request, caller);
      },
      std::move(done));
}

void CoordinatorImpl::RegisterWorker(v1::RegisterWorkerRequest request, std::string caller,
                                     Callback<v1::RegisterWorkerResponse> done) {
  Post<v1::RegisterWorkerResponse>(
      0,
      [this, request = std::move(request), caller = std::move(caller)] {
        return engine_.RegisterWorker(request, caller);
      },
      std::move(done));
}

void CoordinatorImpl::AcquireLease(v1::AcquireLeaseRequest request, std::string caller,
                                   std::function<bool()> given_up,
                                   Callback<v1::AcquireLeaseResponse> done) {
  const absl::Duration wait =
      absl::Microseconds(google::protobuf::util::TimeUtil::DurationToMicroseconds(request.wait()));
  const auto answered = std::make_shared<bool>(false);
  const Callback<v1::AcquireLeaseResponse> once =
      [answered, done = std::move(done)](absl::StatusOr<v1::AcquireLeaseResponse> response) {
        if (!std::exchange(*answered, true)) done(std::move(response));
      };
  const auto apply = [this, worker = request.worker_id(), caller = std::move(caller), wait, once,
                      answered, given_up = std::move(given_up)]() -> Answer {
    if (absl::Status status = engine_.CheckWorker(worker, caller); !status.ok()) {
      return [once, status] { once(status); };
    }
    for (Waiter& waiter : waiters_) waiter.superseded |= waiter.worker == worker;
    Waiter& waiter = waiters_.emplace_back();
    waiter.worker = worker;
    waiter.caller = caller;
    waiter.deadline = engine_.Now() + std::clamp(wait, absl::ZeroDuration(), kMaxAcquireWait);
    waiter.answered = answered;
    waiter.done = once;
    waiter.given_up = given_up;
    return nullptr;
  };
  PostCommand({.apply = apply, .fail = [once](const absl::Status& status) { once(status); }});
}

void CoordinatorImpl::Heartbeat(v1::HeartbeatRequest request, std::string caller,
                                Callback<v1::HeartbeatResponse> done) {
  Post<v1::HeartbeatResponse>(
      0,
      [this, request = std::move(request), caller = std::move(caller)] {
        return engine_.Heartbeat(request, caller);
      },
      std::move(done));
}

void CoordinatorImpl::ReleaseLease(v1::ReleaseLeaseRequest request, std::string caller,
                                   Callback<v1::ReleaseLeaseResponse> done) {
  Post<v1::ReleaseLeaseResponse>(
      0,
      [this, request = std::move(request), caller = std::move(caller)] {
        return engine_.ReleaseLease(request, caller);
      },
      std::move(done));
}

void CoordinatorImpl::StoreEvents(v1::StreamEventsRequest request, std::string caller,
                                  Callback<v1::StreamEventsResponse> done) {
  const int64_t bytes = static_cast<int64_t>(request.ByteSizeLong());
  Post<v1::StreamEventsResponse>(
      bytes,
      [this, request = std::move(request), caller = std::move(caller)] {
        return engine_.StoreEvents(request, caller);
      },
      std::move(done));
}

}  // namespace lengthwise::server
