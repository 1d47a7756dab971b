// The workers' commands, but for their events.
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"
#include "platform/version.h"
#include "server/coordination/engine.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

// How long a trial waits whose checkpoint cannot be read.
constexpr absl::Duration kReadAgain = absl::Seconds(5);
// Trials found so for one worker. A disk that fails is slow to say so, and everybody waits for it.
constexpr int kMostUnreadable = 8;

google::protobuf::Duration ToDuration(absl::Duration duration) {
  return google::protobuf::util::TimeUtil::MicrosecondsToDuration(
      absl::ToInt64Microseconds(duration));
}

}  // namespace

absl::StatusOr<v1::RegisterWorkerResponse> Engine::RegisterWorker(
    const v1::RegisterWorkerRequest& request, const std::string& caller) {
  const v1::WorkerDescription& worker = request.worker();
  if (worker.worker_id().empty()) {
    return absl::InvalidArgumentError("worker.worker_id: is empty");
  }
  if (worker.max_pack_size() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker.max_pack_size: got ", worker.max_pack_size(), ", accepted is 1 and more"));
  }
  if (worker.api_version() != platform::kWorkerApiVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the worker was built with version ", worker.api_version(),
                     " of the worker API, the "
                     "server with ",
                     platform::kWorkerApiVersion, "; build both from the same source"));
  }
  std::string experiment;
  if (!worker.experiment().empty()) {
    absl::StatusOr<std::string> id = ParseExperimentName(worker.experiment());
    if (!id.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("worker.experiment: ", id.status().message()));
    }
    experiment = *std::move(id);
  }
  const std::optional<std::string> owner = fleet_.PrincipalOf(worker.worker_id());
  if (owner.value_or(caller) != caller && scheduler_->IsAlive(worker.worker_id(), Now())) {
    return absl::PermissionDeniedError(absl::StrCat(
        "worker.worker_id: \"", worker.worker_id(),
        "\" is a worker of another principal; choose another id, or register when it was silent "
        "for ",
        absl::FormatDuration(options_.scheduler.lease_duration)));
  }
  LENGTHWISE_FAILPOINT("engine.worker.register");
  scheduler_->Register(worker.worker_id(), worker.max_pack_size(), Now(), experiment);
  fleet_.Register(worker, caller, Now(), clock_.wall());
  v1::RegisterWorkerResponse response;
  *response.mutable_heartbeat_interval() = ToDuration(options_.heartbeat_interval);
  *response.mutable_lease_duration() = ToDuration(options_.scheduler.lease_duration);
  return response;
}

absl::Status Engine::CheckWorker(absl::string_view worker, absl::string_view caller) {
  const std::optional<std::string> owner = fleet_.PrincipalOf(worker);
  if (!owner.has_value() || !scheduler_->IsRegistered(worker)) {
    return absl::NotFoundError(
        absl::StrCat("worker \"", worker, "\" is not registered; register again"));
  }
  if (*owner == caller) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("worker \"", worker, "\" is a worker of another principal"));
}

absl::StatusOr<EventRecord> Engine::CheckpointEvent(const TrialRecord& trial) {
  if (trial.checkpoint_step == 0) return EventRecord();
  ASSIGN_OR_RETURN(const auto events, writer_.NewestEvents(trial.key, v1::Event::kCheckpoint, 4));
  for (const EventRecord& event : events) {
    if (event.step == trial.checkpoint_step) return event;
  }
  return EventRecord();
}

absl::StatusOr<Engine::Found> Engine::CheckSpecification(const std::vector<TrialKey>& trials) {
  if (trials.empty()) return Found::kUsable;
  ASSIGN_OR_RETURN(const TrialRecord first, GetTrial(trials.front()));
  ASSIGN_OR_RETURN(const auto pack, writer_.FindPack(first.pack));
  const absl::Status status =
      ToSharedSpecification(pack.value_or(PackRecord()), writer_.name()).status();
  if (status.ok()) return Found::kUsable;
  for (const TrialKey trial : trials) {
    RETURN_IF_ERROR(Record(scheduler_->Fail(trial, status.message())));
  }
  return Found::kChanged;
}

absl::StatusOr<Engine::Found> Engine::CheckCheckpoint(int64_t key) {
  ASSIGN_OR_RETURN(TrialRecord trial, GetTrial(key));
  if (trial.checkpoint_step == 0) return Found::kUsable;
  // Of the two that are kept; a third may be a damaged one that was passed over before.
  ASSIGN_OR_RETURN(const auto events, writer_.NewestEvents(key, v1::Event::kCheckpoint, 3));
  const int64_t wanted = trial.checkpoint_step;
  int64_t usable = 0;
  std::string problem = "it is not in the history";
  for (const EventRecord& record : events) {
    if (record.step > wanted) continue;
    const absl::StatusOr<v1::Checkpoint> checkpoint = ToCheckpoint(record, writer_.name());
    absl::Status status = checkpoint.status();
    if (status.ok()) {
      status = artifacts_.VerifyQuickly(
          {.experiment = trial.experiment_id, .trial = trial.id, .sha256 = checkpoint->sha256()},
          checkpoint->size_bytes(), kMostBytesToCheck);
    }
    if (status.ok()) {
      usable = record.step;
      break;
    }
    if (!IsLost(status)) {
      // To go back would delete what was measured since, of a checkpoint that may be whole.
      scheduler_->Postpone(key, Now() + kReadAgain,
                           absl::StrCat("the checkpoint of step ", record.step,
                                        " cannot be read now (", status.message(),
                                        "); if it never can be, delete the file, and the trial "
                                        "goes on without it"));
      return Found::kUnreadable;
    }
    if (record.step == wanted) problem = std::string(status.message());
  }
  if (usable == wanted) return Found::kUsable;
  if (usable == 0) {
    ASSIGN_OR_RETURN(const auto pack, writer_.FindPack(trial.pack));
    ASSIGN_OR_RETURN(const auto specification, ToSharedSpecification(*pack, writer_.name()));
    const std::string& evaluated = specification.evaluated_trial();
    if (!evaluated.empty()) {
      RETURN_IF_ERROR(Record(
          scheduler_->Fail(key, absl::StrCat("its copy of the model cannot be used (", problem,
                                             "); evaluate ", evaluated, " again"))));
      return Found::kChanged;
    }
  }

  trial.checkpoint_step = usable;
  RETURN_IF_ERROR(writer_.UpdateTrial(trial, trial.state));
  v1::Event event;
  event.set_attempt(trial.attempt);
  event.set_step(usable);
  event.mutable_log_line()->set_severity(v1::LogLine::WARNING);
  event.mutable_log_line()->set_text(absl::StrCat(
      "the checkpoint of step ", wanted, " cannot be used (", problem, "); going on from ",
      usable > 0 ? absl::StrCat("the one of step ", usable) : "the beginning"));
  RETURN_IF_ERROR(Append(trial, std::move(event)));
  scheduler_->SetCheckpoint(key, usable);
  return Found::kChanged;
}

absl::StatusOr<v1::AcquireLeaseResponse> Engine::AcquireLease(const std::string& worker,
                                                              const std::string& caller) {
  RETURN_IF_ERROR(CheckWorker(worker, caller));
  // A trial whose checkpoint turns out lost moves to another pack, one that fails or has to wait
  // leaves the queue: look again then.
  int unreadable = 0;
  for (bool usable = false; !usable;) {
    const std::vector<TrialKey> pack = scheduler_->NextPack(worker, Now());
    ASSIGN_OR_RETURN(Found found, CheckSpecification(pack));
    if (found != Found::kUsable) continue;
    usable = true;
    for (const TrialKey trial : pack) {
      ASSIGN_OR_RETURN(found, CheckCheckpoint(trial));
      usable = usable && found == Found::kUsable;
      if (found != Found::kUnreadable || ++unreadable < kMostUnreadable) continue;
      return absl::UnavailableError(
          absl::StrCat("the checkpoints of ", unreadable, " trials cannot be read; try again"));
    }
  }
  ASSIGN_OR_RETURN(const Decisions decisions, scheduler_->Grant(worker, Now()));
  v1::AcquireLeaseResponse response;
  if (decisions.trials.empty()) {
    response.set_no_lease_reason(scheduler_->WhyNothing(worker));
    return response;
  }
  LENGTHWISE_FAILPOINT("engine.lease.grant");
  RETURN_IF_ERROR(Record(decisions));
  ASSIGN_OR_RETURN(*response.mutable_lease(), MakeLease(decisions, caller));
  return response;
}

absl::StatusOr<v1::Lease> Engine::MakeLease(const Decisions& decisions, absl::string_view caller) {
  const Token token = decisions.trials.front().token;
  v1::Lease lease;
  lease.set_lease_id(lease_ids_.Make(token, caller));
  lease.set_fencing_token(token);
  lease.set_shape(scheduler_->ShapeOf(decisions.trials.front().trial));
  std::optional<PackRecord> pack;
  for (const TrialChange& change : decisions.trials) {
    ASSIGN_OR_RETURN(const TrialRecord trial, GetTrial(change.trial));
    if (!pack.has_value()) {
      ASSIGN_OR_RETURN(pack, writer_.FindPack(trial.pack));
    }
    v1::LeasedTrial& leased = *lease.add_trials();
    leased.set_trial(TrialName(trial.experiment_id, trial.id));
    ASSIGN_OR_RETURN(auto specification, ToTrialSpecification(trial, *pack, writer_.name()));
    *leased.mutable_specification() = std::move(specification);
    leased.set_attempt(trial.attempt);
    leased.set_checkpoint_step(trial.checkpoint_step);
    effects_.running.push_back(StartOf(trial, *pack, leased.specification()));
    if (trial.checkpoint_step == 0) continue;
    ASSIGN_OR_RETURN(const EventRecord checkpoint, CheckpointEvent(trial));
    ASSIGN_OR_RETURN(*leased.mutable_checkpoint(), ToCheckpoint(checkpoint, writer_.name()));
  }
  return lease;
}

absl::StatusOr<v1::HeartbeatResponse> Engine::Heartbeat(const v1::HeartbeatRequest& request,
                                                        const std::string& caller) {
  LENGTHWISE_FAILPOINT("engine.heartbeat");
  RETURN_IF_ERROR(CheckWorker(request.worker_id(), caller));
  std::vector<Token> tokens;
  for (const v1::HeldLease& lease : request.leases()) {
    // An id that does not fit is no lease of this caller.
    const bool fits = lease_ids_.Fits(lease.lease_id(), lease.fencing_token(), caller);
    tokens.push_back(fits ? lease.fencing_token() : 0);
  }
  ASSIGN_OR_RETURN(const std::vector<LeaseDirective> directives,
                   scheduler_->Heartbeat(request.worker_id(), tokens, Now()));
  fleet_.Heartbeat(request.worker_id(), request.measurements(), Now(), clock_.wall());
  if (request.stopping()) {
    scheduler_->Unregister(request.worker_id());
    fleet_.Stop(request.worker_id());
  }
  for (const v1::PackCapacity& capacity : request.capacities()) {
    scheduler_->SetCapacity(request.worker_id(), capacity.shape(), capacity.max_pack_size());
  }
  v1::HeartbeatResponse response;
  for (int i = 0; i < request.leases_size(); ++i) {
    v1::HeartbeatResponse::LeaseDirective& directive = *response.add_leases();
    directive.set_lease_id(request.leases(i).lease_id());
    directive.set_lost(directives[i].lost);
    directive.set_preempted(!directives[i].preempted.empty());
    directive.set_reason(directives[i].preempted);
    for (const TrialKey key : directives[i].cancelled) {
      ASSIGN_OR_RETURN(const std::optional<TrialRecord> trial, writer_.FindTrial(key));
      if (!trial.has_value()) continue;  // its experiment was deleted
      directive.add_cancelled_trials(TrialName(trial->experiment_id, trial->id));
    }
  }
  for (const v1::TrialProgress& progress : request.progress()) {
    effects_.progress.push_back({.worker = request.worker_id(), .progress = progress});
  }
  return response;
}

absl::StatusOr<v1::ReleaseLeaseResponse> Engine::ReleaseLease(
    const v1::ReleaseLeaseRequest& request, const std::string& caller) {
  LENGTHWISE_FAILPOINT("engine.lease.release");
  if (!lease_ids_.Fits(request.lease_id(), request.fencing_token(), caller)) {
    return absl::PermissionDeniedError(
        absl::StrCat("lease ", request.fencing_token(), " is not the caller's, or not by this id"));
  }
  RETURN_IF_ERROR(Record(
      scheduler_->Release(request.worker_id(), request.fencing_token(), request.reason(), Now())));
  return v1::ReleaseLeaseResponse();
}

}  // namespace lengthwise::server
