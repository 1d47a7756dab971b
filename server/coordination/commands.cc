// The coordinator's commands: each becomes an entry of the queue.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/time_util.h"
#include "platform/sha256.h"
#include "server/coordination/coordinator_impl.h"
#include "server/coordination/messages.h"

namespace lengthwise::server {
namespace {

constexpr absl::Duration kMaxAcquireWait = absl::Seconds(60);

// What a request asks for, in a form that two equal requests share.
std::string Fingerprint(v1::CreateExperimentRequest request) {
  request.clear_request_id();
  request.clear_validate_only();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }
  return platform::Sha256Hex(bytes);
}

}  // namespace

template <typename T>
void CoordinatorImpl::Post(int64_t bytes, std::function<absl::StatusOr<T>()> apply,
                           Callback<T> done) {
  PostCommand({.apply = [apply = std::move(apply), done]() -> Answer {
                 auto result = std::make_shared<absl::StatusOr<T>>(apply());
                 return [done, result] { done(std::move(*result)); };
               },
               .fail = [done](absl::Status status) { done(std::move(status)); },
               .bytes = bytes});
}

void CoordinatorImpl::CreateExperiment(v1::CreateExperimentRequest request,
                                       Callback<v1::CreateExperimentResponse> done) {
  using Response = v1::CreateExperimentResponse;
  // A large grid takes seconds: on this thread, not on the coordinator's.
  absl::StatusOr<specification::Grid> grid = dependencies_.resolve(request);
  if (!grid.ok()) {
    return Post<Response>(
        0, [status = grid.status()]() -> absl::StatusOr<Response> { return status; },
        std::move(done));
  }
  auto submission = std::make_shared<Submission>();
  submission->grid = *std::move(grid);
  ExperimentRecord& record = submission->experiment;
  const v1::ExperimentSpecification& specification = submission->grid.specification;
  record.name = specification.name();
  record.owner = request.owner().empty() ? "anonymous" : request.owner();
  record.priority = specification.priority();
  record.specification = specification.SerializeAsString();
  record.create_time = dependencies_.clock.wall();
  if (request.has_specification_text()) {
    record.source = request.specification_text().SerializeAsString();
  }
  record.request_id = request.request_id();
  record.request_fingerprint = Fingerprint(request);
  const bool validate_only = request.validate_only();
  const int64_t bytes = static_cast<int64_t>(submission->grid.trials.size() * sizeof(TrialRecord));
  Post<Response>(
      bytes,
      [this, submission, validate_only] {
        return validate_only ? Engine::Preview(*submission) : engine_.CreateExperiment(*submission);
      },
      std::move(done));
}

void CoordinatorImpl::CancelExperiment(v1::CancelExperimentRequest request,
                                       Callback<v1::Experiment> done) {
  Post<v1::Experiment>(
      0, [this, request = std::move(request)] { return engine_.CancelExperiment(request); },
      std::move(done));
}

void CoordinatorImpl::DeleteExperiment(v1::DeleteExperimentRequest request,
                                       Callback<v1::DeleteExperimentResponse> done) {
  Post<v1::DeleteExperimentResponse>(
      0, [this, request = std::move(request)] { return engine_.DeleteExperiment(request); },
      std::move(done));
}

void CoordinatorImpl::CancelTrial(v1::CancelTrialRequest request, Callback<v1::Trial> done) {
  Post<v1::Trial>(
      0, [this, request = std::move(request)] { return engine_.CancelTrial(request); },
      std::move(done));
}

void CoordinatorImpl::RegisterWorker(v1::RegisterWorkerRequest request,
                                     Callback<v1::RegisterWorkerResponse> done) {
  Post<v1::RegisterWorkerResponse>(
      0, [this, request = std::move(request)] { return engine_.RegisterWorker(request); },
      std::move(done));
}

void CoordinatorImpl::AcquireLease(v1::AcquireLeaseRequest request,
                                   Callback<v1::AcquireLeaseResponse> done) {
  const absl::Duration wait =
      absl::Microseconds(google::protobuf::util::TimeUtil::DurationToMicroseconds(request.wait()));
  const auto answered = std::make_shared<bool>(false);
  const Callback<v1::AcquireLeaseResponse> once =
      [answered, done = std::move(done)](absl::StatusOr<v1::AcquireLeaseResponse> response) {
        if (!std::exchange(*answered, true)) done(std::move(response));
      };
  const auto apply = [this, worker = request.worker_id(), wait, once, answered]() -> Answer {
    if (!engine_.scheduler().IsRegistered(worker)) {
      const absl::Status status = absl::NotFoundError(
          absl::StrCat("worker \"", worker, "\" is not registered; register again"));
      return [once, status] { once(status); };
    }
    for (Waiter& waiter : waiters_) waiter.superseded |= waiter.worker == worker;
    Waiter& waiter = waiters_.emplace_back();
    waiter.worker = worker;
    waiter.deadline = engine_.Now() + std::clamp(wait, absl::ZeroDuration(), kMaxAcquireWait);
    waiter.answered = answered;
    waiter.done = once;
    return nullptr;
  };
  PostCommand({.apply = apply, .fail = [once](const absl::Status& status) { once(status); }});
}

void CoordinatorImpl::Heartbeat(v1::HeartbeatRequest request,
                                Callback<v1::HeartbeatResponse> done) {
  Post<v1::HeartbeatResponse>(
      0, [this, request = std::move(request)] { return engine_.Heartbeat(request); },
      std::move(done));
}

void CoordinatorImpl::ReleaseLease(v1::ReleaseLeaseRequest request,
                                   Callback<v1::ReleaseLeaseResponse> done) {
  Post<v1::ReleaseLeaseResponse>(
      0, [this, request = std::move(request)] { return engine_.ReleaseLease(request); },
      std::move(done));
}

void CoordinatorImpl::StoreEvents(v1::StreamEventsRequest request,
                                  Callback<v1::StreamEventsResponse> done) {
  const int64_t bytes = static_cast<int64_t>(request.ByteSizeLong());
  Post<v1::StreamEventsResponse>(
      bytes, [this, request = std::move(request)] { return engine_.StoreEvents(request); },
      std::move(done));
}

}  // namespace lengthwise::server
