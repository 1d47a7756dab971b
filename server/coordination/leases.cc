#include "server/coordination/leases.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "platform/failpoint.h"
#include "platform/log.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "platform/version.h"
#include "server/coordination/event_intake.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

// Delay before the next attempt to lease a trial whose checkpoint cannot be read.
constexpr absl::Duration kReadAgain = absl::Seconds(5);
// Most such trials tried for one worker. A failing disk answers slowly, and every caller waits.
constexpr int kMostUnreadable = 8;

google::protobuf::Duration ToDuration(absl::Duration duration) {
  return google::protobuf::util::TimeUtil::MicrosecondsToDuration(
      absl::ToInt64Microseconds(duration));
}

// Digits of a lease id that prove its holder: 128 bits.
constexpr size_t kProofDigits = 32;

}  // namespace

std::string LeaseIds::Make(Token token, absl::string_view principal) const {
  if (token < key_.first_token) return absl::StrCat("lease-", token);
  const std::string proof =
      platform::HmacSha256Hex(key_.key, absl::StrCat("lease ", token, " of ", principal));
  return absl::StrCat("lease-", token, "-", absl::string_view(proof).substr(0, kProofDigits));
}

bool LeaseIds::Fits(absl::string_view id, Token token, absl::string_view principal) const {
  if (token < 1) return false;
  const std::string made = Make(token, principal);
  // Compare in constant time, so that timing does not reveal a matching prefix.
  return id.size() == made.size() && CRYPTO_memcmp(id.data(), made.data(), made.size()) == 0;
}

absl::Status LeaseIds::Check(absl::string_view id, Token token, absl::string_view principal) const {
  if (Fits(id, token, principal)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("lease ", token, " is not the caller's, or not by this id"));
}

Leases::Leases(const Options& options, Ledger& ledger, ArtifactStore& artifacts, Fleet& fleet,
               const LeaseIds& ids)
    : options_(options),
      ledger_(ledger),
      store_(ledger.store()),
      artifacts_(artifacts),
      fleet_(fleet),
      ids_(ids) {}

absl::Duration Leases::HeartbeatInterval(absl::Duration least, int64_t workers) {
  const absl::Duration bounded = absl::Seconds(1) * workers / kMostHeartbeatsPerSecond;
  return std::max(least, std::min(bounded, kLongestHeartbeatInterval));
}

absl::Duration Leases::LongestHold(absl::Duration least, absl::Duration lease, int64_t workers) {
  const absl::Duration wanted =
      std::min(absl::Seconds(1) * workers / kMostHeartbeatsPerSecond, lease / 4);
  return wanted > least ? wanted : absl::ZeroDuration();
}

absl::Duration Leases::longest_hold() const {
  return LongestHold(options_.heartbeat_interval, options_.lease_duration,
                     ledger_.scheduler().fleet_size());
}

google::protobuf::Duration Leases::CurrentHeartbeatInterval() const {
  const absl::Duration wanted =
      HeartbeatInterval(options_.heartbeat_interval, ledger_.scheduler().fleet_size());
  // Short leases must not expire between two heartbeats.
  return ToDuration(
      std::max(options_.heartbeat_interval, std::min(wanted, options_.lease_duration / 4)));
}

absl::StatusOr<v1::RegisterWorkerResponse> Leases::Register(
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
    return absl::FailedPreconditionError(absl::StrCat(
        "the worker has version ", worker.api_version(), " of the worker API, the server ",
        platform::kWorkerApiVersion, "; upgrade the ",
        worker.api_version() < platform::kWorkerApiVersion ? "worker" : "server"));
  }
  std::string experiment;
  if (!worker.experiment().empty()) {
    absl::StatusOr<std::string> id = ParseExperimentName(worker.experiment());
    if (!id.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("worker.experiment: ", id.status().message()));
    }
    experiment = *std::move(id);
  }
  // The id may change hands once its worker has been silent for a lease duration: that worker's
  // leases have expired then.
  const std::optional<std::string> owner = fleet_.PrincipalOf(worker.worker_id());
  if (owner.value_or(caller) != caller &&
      ledger_.scheduler().IsAlive(worker.worker_id(), ledger_.Now())) {
    return absl::PermissionDeniedError(absl::StrCat(
        "worker.worker_id: \"", worker.worker_id(),
        "\" is a worker of another principal; choose another id, or register when it was silent "
        "for ",
        absl::FormatDuration(options_.lease_duration)));
  }
  LENGTHWISE_FAILPOINT("engine.worker.register");
  ledger_.scheduler().Register(worker.worker_id(), worker.max_pack_size(), ledger_.Now(),
                               experiment);
  fleet_.Register(worker, caller, ledger_.Now(), ledger_.WallTime());
  v1::RegisterWorkerResponse response;
  *response.mutable_heartbeat_interval() = CurrentHeartbeatInterval();
  *response.mutable_lease_duration() = ToDuration(options_.lease_duration);
  return response;
}

absl::Status Leases::CheckWorker(absl::string_view worker, absl::string_view caller) {
  const std::optional<std::string> owner = fleet_.PrincipalOf(worker);
  if (!owner.has_value() || !ledger_.scheduler().IsRegistered(worker)) {
    return absl::NotFoundError(
        absl::StrCat("worker \"", worker, "\" is not registered; register again"));
  }
  if (*owner == caller) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("worker \"", worker, "\" is a worker of another principal"));
}

absl::StatusOr<Leases::Found> Leases::CheckSpecification(const std::vector<TrialKey>& trials) {
  if (trials.empty()) return Found::kUsable;
  ASSIGN_OR_RETURN(const TrialRecord first, ledger_.GetTrial(trials.front()));
  ASSIGN_OR_RETURN(const auto pack, store_.FindPack(first.pack));
  const absl::Status status =
      ToSharedSpecification(pack.value_or(PackRecord()), store_.name()).status();
  if (status.ok()) return Found::kUsable;
  for (const TrialKey trial : trials) {
    RETURN_IF_ERROR(ledger_.Record(ledger_.scheduler().Fail(trial, status.message())));
  }
  return Found::kChanged;
}

absl::StatusOr<Leases::Found> Leases::CheckCheckpoint(int64_t key) {
  ASSIGN_OR_RETURN(TrialRecord trial, ledger_.GetTrial(key));
  if (trial.checkpoint_step == 0) return Found::kUsable;
  // One more than are kept may be a damaged one that was passed over before.
  ASSIGN_OR_RETURN(const auto events,
                   store_.NewestEvents(key, v1::Event::kCheckpoint, kKeptCheckpoints + 1));
  const int64_t wanted = trial.checkpoint_step;
  int64_t usable = 0;
  std::string problem = "it is not in the history";
  for (const EventRecord& record : events) {
    if (record.step > wanted) continue;
    const absl::StatusOr<v1::Checkpoint> checkpoint = ToCheckpoint(record, store_.name());
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
      // Resuming from an older checkpoint would delete later measurements, although this one may be
      // intact.
      ledger_.scheduler().Postpone(
          key, ledger_.Now() + kReadAgain,
          absl::StrCat("the checkpoint of step ", record.step, " cannot be read now (",
                       status.message(),
                       "); if it never can be, delete the file, and the trial "
                       "goes on without it"));
      return Found::kUnreadable;
    }
    if (record.step == wanted) problem = std::string(status.message());
  }
  if (usable == wanted) return Found::kUsable;
  if (usable == 0) {
    ASSIGN_OR_RETURN(const auto pack, store_.FindPack(trial.pack));
    ASSIGN_OR_RETURN(const auto specification, ToSharedSpecification(*pack, store_.name()));
    const std::string& evaluated = specification.evaluated_trial();
    if (!evaluated.empty()) {
      RETURN_IF_ERROR(ledger_.Record(ledger_.scheduler().Fail(
          key, absl::StrCat("its copy of the model cannot be used (", problem, "); evaluate ",
                            evaluated, " again"))));
      return Found::kChanged;
    }
  }

  trial.checkpoint_step = usable;
  RETURN_IF_ERROR(store_.UpdateTrial(trial, trial.state));
  v1::Event event;
  event.set_attempt(trial.attempt);
  event.set_step(usable);
  event.mutable_log_line()->set_severity(v1::LogLine::WARNING);
  event.mutable_log_line()->set_text(absl::StrCat(
      "the checkpoint of step ", wanted, " cannot be used (", problem, "); going on from ",
      usable > 0 ? absl::StrCat("the one of step ", usable) : "the beginning"));
  RETURN_IF_ERROR(ledger_.Append(trial, std::move(event)));
  ledger_.scheduler().SetCheckpoint(key, usable);
  return Found::kChanged;
}

absl::StatusOr<v1::AcquireLeaseResponse> Leases::Acquire(const std::string& worker,
                                                         const std::string& caller) {
  RETURN_IF_ERROR(CheckWorker(worker, caller));
  // Looks again until the whole next pack can be used: a trial whose checkpoint is lost moves to
  // another pack, and one that fails or must wait leaves the queue.
  int unreadable = 0;
  for (bool usable = false; !usable;) {
    const std::vector<TrialKey> pack = ledger_.scheduler().NextPack(worker, ledger_.Now());
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
  ASSIGN_OR_RETURN(const Decisions decisions, ledger_.scheduler().Grant(worker, ledger_.Now()));
  v1::AcquireLeaseResponse response;
  if (decisions.trials.empty()) {
    response.set_no_lease_reason(ledger_.scheduler().WhyNothing(worker, ledger_.Now()));
    return response;
  }
  LENGTHWISE_FAILPOINT("engine.lease.grant");
  RETURN_IF_ERROR(ledger_.Record(decisions));
  ASSIGN_OR_RETURN(*response.mutable_lease(), MakeLease(decisions, caller));
  return response;
}

absl::StatusOr<v1::Lease> Leases::MakeLease(const Decisions& decisions, absl::string_view caller) {
  const Token token = decisions.trials.front().token;
  v1::Lease lease;
  lease.set_lease_id(ids_.Make(token, caller));
  lease.set_fencing_token(token);
  lease.set_shape(ledger_.scheduler().ShapeOf(decisions.trials.front().trial));
  std::optional<PackRecord> pack;
  for (const TrialChange& change : decisions.trials) {
    ASSIGN_OR_RETURN(const TrialRecord trial, ledger_.GetTrial(change.trial));
    if (!pack.has_value()) {
      ASSIGN_OR_RETURN(pack, store_.FindPack(trial.pack));
    }
    v1::LeasedTrial& leased = *lease.add_trials();
    leased.set_trial(TrialName(trial.experiment_id, trial.id));
    ASSIGN_OR_RETURN(auto specification, ToTrialSpecification(trial, *pack, store_.name()));
    *leased.mutable_specification() = std::move(specification);
    leased.set_attempt(trial.attempt);
    leased.set_checkpoint_step(trial.checkpoint_step);
    ledger_.effects().running.push_back(StartOf(trial, *pack, leased.specification()));
    if (trial.checkpoint_step == 0) continue;
    ASSIGN_OR_RETURN(const EventRecord checkpoint, FindCheckpointEvent(store_, trial));
    ASSIGN_OR_RETURN(*leased.mutable_checkpoint(), ToCheckpoint(checkpoint, store_.name()));
  }
  return lease;
}

template <typename HeldLeases>
std::vector<Token> Leases::TokensOf(const HeldLeases& leases, const std::string& caller) const {
  std::vector<Token> tokens;
  for (const v1::HeldLease& lease : leases) {
    // The scheduler has no lease 0, so the worker is told that it has lost a lease that is not its
    // own.
    const bool fits = ids_.Fits(lease.lease_id(), lease.fencing_token(), caller);
    tokens.push_back(fits ? lease.fencing_token() : 0);
  }
  return tokens;
}

template <typename HeldLeases>
absl::StatusOr<v1::HeartbeatResponse> Leases::ToResponse(
    const HeldLeases& leases, const std::vector<LeaseDirective>& directives) {
  v1::HeartbeatResponse response;
  *response.mutable_heartbeat_interval() = CurrentHeartbeatInterval();
  auto next = directives.begin();
  for (const v1::HeldLease& lease : leases) {
    const LeaseDirective& decided = *next++;
    v1::HeartbeatResponse::LeaseDirective& directive = *response.add_leases();
    directive.set_lease_id(lease.lease_id());
    directive.set_lost(decided.lost);
    directive.set_preempted(!decided.preempted.empty());
    directive.set_reason(decided.preempted);
    for (const TrialKey key : decided.cancelled) {
      ASSIGN_OR_RETURN(const std::optional<TrialRecord> trial, store_.FindTrial(key));
      if (!trial.has_value()) {
        // Its experiment was deleted before the worker heard of the cancellation. All trials of a
        // lease belong to one experiment, so the worker has nothing left to run.
        directive.set_lost(true);
        continue;
      }
      directive.add_cancelled_trials(TrialName(trial->experiment_id, trial->id));
    }
  }
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> Leases::Heartbeat(const v1::HeartbeatRequest& request,
                                                        const std::string& caller) {
  LENGTHWISE_FAILPOINT("engine.heartbeat");
  RETURN_IF_ERROR(CheckWorker(request.worker_id(), caller));
  ASSIGN_OR_RETURN(const std::vector<LeaseDirective> directives,
                   ledger_.scheduler().Heartbeat(
                       request.worker_id(), TokensOf(request.leases(), caller), ledger_.Now()));
  fleet_.Heartbeat(request.worker_id(), request.measurements(), ledger_.Now(), ledger_.WallTime());
  if (request.stopping()) {
    ledger_.scheduler().Unregister(request.worker_id());
    fleet_.Stop(request.worker_id());
  }
  for (const v1::PackCapacity& capacity : request.capacities()) {
    ledger_.scheduler().SetCapacity(request.worker_id(), capacity.shape(),
                                    capacity.max_pack_size());
  }
  ASSIGN_OR_RETURN(v1::HeartbeatResponse response, ToResponse(request.leases(), directives));
  for (const v1::TrialProgress& progress : request.progress()) {
    ledger_.effects().progress.push_back({.worker = request.worker_id(), .progress = progress});
  }
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> Leases::AnswerHeartbeat(
    const std::string& worker, const std::vector<v1::HeldLease>& leases,
    const std::string& caller) {
  return ToResponse(leases, ledger_.scheduler().Directives(worker, TokensOf(leases, caller)));
}

absl::StatusOr<v1::ReleaseLeaseResponse> Leases::Release(const v1::ReleaseLeaseRequest& request,
                                                         const std::string& caller) {
  LENGTHWISE_FAILPOINT("engine.lease.release");
  RETURN_IF_ERROR(ids_.Check(request.lease_id(), request.fencing_token(), caller));
  Scheduler& scheduler = ledger_.scheduler();
  if (request.unfit()) {
    platform::LogWarning(absl::StrCat(request.worker_id(), " gives lease ", request.fencing_token(),
                                      " back: ", request.reason()));
    scheduler.SetUnfit(request.worker_id(), request.fencing_token(), request.reason(),
                       ledger_.Now());
  }
  // A repeated release changes nothing, because the scheduler no longer has the lease.
  RETURN_IF_ERROR(ledger_.Record(scheduler.Release(request.worker_id(), request.fencing_token(),
                                                   request.reason(), request.lost())));
  return v1::ReleaseLeaseResponse();
}

}  // namespace lengthwise::server
