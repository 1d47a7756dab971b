#include "worker/connection/lease_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/log.h"
#include "worker/connection/artifact_transfer.h"
#include "worker/connection/server_calls.h"

namespace lengthwise::worker {
namespace {

// Every call has all of them. Forgetting one is harmless: it is learned again.
constexpr size_t kMostShapes = 100;

// A measured capacity from here on limits no pack and is not reported.
constexpr int64_t kUnlimited = 1000;

}  // namespace

void PackCapacities::DidNotFit(absl::string_view shape, int64_t trials) {
  if (trials > 1) Limit(shape, trials / 2);
}

void PackCapacities::Measured(absl::string_view shape, int64_t trials) {
  if (trials < kUnlimited) Limit(shape, std::max<int64_t>(1, trials));
}

void PackCapacities::Limit(absl::string_view shape, int64_t trials) {
  if (shape.empty()) return;
  const auto limit = static_cast<int32_t>(trials);
  platform::MutexLock lock(mutex_);
  const auto known = capacities_.find(shape);
  if (known != capacities_.end()) {
    known->second = std::min(known->second, limit);
    return;
  }
  if (capacities_.size() >= kMostShapes) capacities_.clear();
  capacities_[std::string(shape)] = limit;
}

void PackCapacities::AddTo(v1::SynchronizeRequest& request) const {
  platform::MutexLock lock(mutex_);
  for (const auto& [shape, trials] : capacities_) {
    v1::PackCapacity& capacity = *request.add_capacities();
    capacity.set_shape(shape);
    capacity.set_max_pack_size(trials);
  }
}

LeaseSession::LeaseSession(v1::WorkerService::StubInterface& stub, ObjectTransfers& objects,
                           PackCapacities& capacities, v1::Lease lease, const Options& options)
    : lease_(std::move(lease)),
      options_(options),
      stub_(stub),
      objects_(objects),
      capacities_(capacities),
      outbox_(lease_, options.outbox),
      progress_(lease_.trials_size()),
      sender_(stub, objects_, lease_, outbox_, options.sender) {}

void LeaseSession::Emit(int64_t trial, v1::Event event) {
  if (event.outcome().kind() == v1::Outcome::OUT_OF_MEMORY) {
    capacities_.DidNotFit(lease_.shape(), lease_.trials_size());
  }
  outbox_.Put(trial, std::move(event));
}

void LeaseSession::EmitCheckpoint(int64_t trial, int64_t step, std::string bytes) {
  outbox_.PutCheckpoint(trial, step, std::move(bytes));
}

absl::StatusOr<std::string> LeaseSession::Fetch(int64_t trial, absl::string_view sha256,
                                                absl::string_view what, const Ask& ask) {
  const std::string& name = lease_.trials(static_cast<int>(trial)).trial();
  v1::DownloadArtifactRequest request;
  request.set_lease_id(lease_.lease_id());
  request.set_fencing_token(lease_.fencing_token());
  request.set_trial(name);
  request.set_sha256(std::string(sha256));
  LENGTHWISE_FAILPOINT("session.fetch.before");
  Backoff backoff(options_.sender.backoff);
  // A drain ends the fetch: a trial that has not loaded its checkpoint has nothing new to store.
  while (!outbox_.stopped(trial) && !draining_.load(std::memory_order_acquire)) {
    absl::StatusOr<std::string> fetched = ask(request);
    const absl::Status& status = fetched.status();
    // The fencing token is stale: the trial no longer belongs to this lease.
    if (absl::IsPermissionDenied(status)) outbox_.CloseTrial(trial);
    if (fetched.ok() || !IsTransient(status)) return fetched;
    if (draining_.load(std::memory_order_acquire)) break;
    platform::LogWarning("fetching ", what, " of ", name, " failed (", ShortReason(status),
                         "); retrying");
    outbox_.Sleep(After(backoff.Next()));
  }
  return absl::CancelledError(absl::StrCat("the lease of ", name, " has ended or is draining"));
}

absl::StatusOr<std::string> LeaseSession::FetchCheckpoint(int64_t trial) {
  const v1::LeasedTrial& leased = lease_.trials(static_cast<int>(trial));
  if (!leased.has_checkpoint()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the lease names no checkpoint of ", leased.trial()));
  }
  const int64_t size = leased.checkpoint().size_bytes();
  return Fetch(trial, leased.checkpoint().sha256(), "the checkpoint",
               [&](const v1::DownloadArtifactRequest& request) {
                 auto bytes = objects_.Get(stub_, calls_, request, size);
                 if (absl::IsUnimplemented(bytes.status())) {
                   bytes = DownloadArtifact(stub_, calls_, request, size);
                 }
                 return bytes;
               });
}

absl::StatusOr<std::string> LeaseSession::FetchData(int64_t trial, absl::string_view sha256,
                                                    int64_t bytes) {
  return Fetch(trial, sha256, "the examples", [&](const v1::DownloadArtifactRequest& request) {
    absl::Status download, taken;
    absl::StatusOr<std::string> path = options_.data->Get(sha256, [&](const auto& take) {
      download =
          DownloadArtifactInChunks(stub_, calls_, request, bytes,
                                   [&](absl::string_view chunk) { return taken = take(chunk); });
      return download;
    });
    // An error of the local disk must not look like the server's, which would be retried or end the
    // lease.
    if (!path.ok() && (download.ok() || !taken.ok())) {
      path = absl::FailedPreconditionError(
          absl::StrCat("cannot store a file of examples: ", path.status().message()));
    }
    return path;
  });
}

void LeaseSession::ReportProgress(int64_t trial, v1::TrialProgress progress) {
  progress.set_trial(lease_.trials(static_cast<int>(trial)).trial());
  progress.set_attempt(lease_.trials(static_cast<int>(trial)).attempt());
  platform::MutexLock lock(mutex_);
  progress_[trial] = {.newest = std::move(progress), .sent = false};
}

PackSession::Directive LeaseSession::GetDirective(int64_t trial) {
  if (outbox_.closed()) return Directive::kLost;
  if (outbox_.stopped(trial)) return Directive::kCancelled;
  return draining_.load(std::memory_order_acquire) ? Directive::kDrain : Directive::kContinue;
}

void LeaseSession::CountStep(const StepTime& step) {
  if (nanoseconds_to_first_step_.load(std::memory_order_relaxed) == 0) {
    nanoseconds_to_first_step_ = (std::chrono::steady_clock::now() - start_).count();
  }
  if (options_.measurements != nullptr) options_.measurements->CountStep(step);
}

void LeaseSession::CountEvaluation(double seconds) {
  if (options_.measurements != nullptr) options_.measurements->CountEvaluation(seconds);
}

void LeaseSession::CountCheckpoint(double seconds, int64_t bytes) {
  if (options_.measurements != nullptr) options_.measurements->CountCheckpoint(seconds, bytes);
}

void LeaseSession::AddMeasurements(v1::WorkerMeasurements& measurements) {
  measurements.set_unsent_events(outbox_.unsent_events());
  measurements.set_unsent_bytes(outbox_.unsent_bytes());
  if (lost()) return;
  platform::MutexLock lock(mutex_);
  for (size_t trial = 0; trial < progress_.size(); ++trial) {
    if (outbox_.finished(static_cast<int64_t>(trial))) continue;
    measurements.set_trials(measurements.trials() + 1);
    const v1::TrialProgress& newest = progress_[trial].newest;
    if (newest.phase() != v1::TrialProgress::TRAINING) continue;
    // The members of a pack step together, so their common rate is the maximum, not the sum.
    const double rate = newest.steps_per_second();
    measurements.set_steps_per_second(std::max(measurements.steps_per_second(), rate));
    measurements.set_model_steps_per_second(measurements.model_steps_per_second() + rate);
  }
}

void LeaseSession::AddProgress(v1::SynchronizeRequest& request) {
  if (lost()) return;
  platform::MutexLock lock(mutex_);
  for (size_t trial = 0; trial < progress_.size(); ++trial) {
    Progress& progress = progress_[trial];
    if (outbox_.finished(static_cast<int64_t>(trial))) continue;
    if (!progress.sent) *request.add_progress() = progress.newest;
    progress.sent = true;
  }
}

void LeaseSession::Apply(const v1::SynchronizeResponse& response) {
  for (const v1::SynchronizeResponse::LeaseStatus& directive : response.leases()) {
    if (directive.lease_id() != lease_.lease_id()) continue;
    if (directive.lost() && !lost()) {
      platform::LogWarning("lease ", lease_.fencing_token(), " is lost: stopping its trials");
      Abandon();
    }
    if (directive.preempted()) Preempt(directive.reason());
    const absl::flat_hash_set<std::string> cancelled(directive.cancelled_trials().begin(),
                                                     directive.cancelled_trials().end());
    if (cancelled.empty()) continue;
    for (int trial = 0; trial < lease_.trials_size(); ++trial) {
      const std::string& name = lease_.trials(trial).trial();
      if (!cancelled.contains(name) || outbox_.finished(trial)) continue;
      platform::LogInfo(name, " was cancelled");
      outbox_.CloseTrial(trial);
    }
  }
}

void LeaseSession::Preempt(const std::string& reason) {
  {
    platform::MutexLock lock(mutex_);
    if (!preemption_.empty()) return;  // the directive is repeated until the lease ends
    preemption_ = reason.empty() ? "the server wanted it back" : reason;
  }
  platform::LogInfo("lease ", lease_.fencing_token(), ": ", reason,
                    "; storing checkpoints and giving it back");
  Drain();
}

std::string LeaseSession::preemption() {
  platform::MutexLock lock(mutex_);
  return preemption_;
}

void LeaseSession::Drain() {
  LENGTHWISE_FAILPOINT("session.drain");
  // Set before the cancellation, so that Fetch does not take its cancelled call for an outage. The
  // time of the first drain counts.
  if (draining_.exchange(true)) return;
  calls_.Cancel();
  outbox_.SetPatience(After(options_.drain_timeout), options_.drain_stall);
}

void LeaseSession::Abandon() {
  outbox_.Close();
  calls_.Cancel();
}

bool LeaseSession::Flush() {
  // The time of the runner's last step does not count as a stall of the server.
  outbox_.NoteProgress();
  return outbox_.Flush();
}

bool LeaseSession::IsComplete() const {
  for (int trial = 0; trial < lease_.trials_size(); ++trial) {
    if (!outbox_.finished(trial)) return false;
  }
  return true;
}

}  // namespace lengthwise::worker
