#include "server/coordination/leases.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/time_util.h"
#include "platform/failpoint.h"
#include "platform/log.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "platform/version.h"
#include "proto/timestamps.h"
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

// Replaced processes of a worker that are remembered. They are told to end.
constexpr size_t kMostReplaced = 16;

// Digits of a lease id that prove its holder: 128 bits.
constexpr size_t kProofDigits = 32;

// Of a request that names a worker or all.
template <typename Request>
absl::Status CheckHeld(const Request& request) {
  if (request.worker().empty() == request.all()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      request.all() ? "worker and all: both are set; accepted is one of them"
                    : "worker: is empty; name a worker, or set `all` for the whole queue");
}

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

Leases::Leases(absl::Duration lease_duration, absl::Duration heartbeat_interval, Ledger& ledger,
               ArtifactStore& artifacts, Fleet& fleet, const LeaseIds& ids)
    : lease_duration_(lease_duration),
      heartbeat_interval_(heartbeat_interval),
      ledger_(ledger),
      store_(ledger.store()),
      artifacts_(artifacts),
      fleet_(fleet),
      ids_(ids) {}

absl::Duration Leases::HeartbeatInterval(absl::Duration least, absl::Duration lease,
                                         int64_t workers) {
  const absl::Duration bounded = absl::Seconds(1) * workers / kMostHeartbeatsPerSecond;
  return std::max(least, std::min({bounded, kLongestHeartbeatInterval, lease / 4}));
}

absl::Duration Leases::LongestHold(absl::Duration least, absl::Duration lease, int64_t workers) {
  const absl::Duration wanted =
      std::min(absl::Seconds(1) * workers / kMostHeartbeatsPerSecond, lease / 4);
  return wanted > least ? wanted : absl::ZeroDuration();
}

absl::Duration Leases::LongestHold(bool wants_lease) const {
  // As long as in the largest fleets: a worker without a lease has nothing else to report.
  if (wants_lease) return lease_duration_ / 4;
  return LongestHold(heartbeat_interval_, lease_duration_, ledger_.scheduler().fleet_size());
}

absl::Status Leases::Register(const v1::SynchronizeRequest& request, const std::string& caller) {
  const v1::WorkerDescription& worker = request.worker();
  RETURN_IF_ERROR(CheckVersion(worker));
  std::string experiment;
  if (!worker.experiment().empty()) {
    ASSIGN_OR_RETURN(experiment, ParseExperimentName(worker.experiment(), "worker.experiment"));
  }
  LENGTHWISE_FAILPOINT("engine.worker.register");
  RETURN_IF_ERROR(fleet_.Register(worker, caller, ledger_.Now(), ledger_.WallTime()));
  Scheduler& scheduler = ledger_.scheduler();
  std::vector<std::string> replaced;
  if (WorkerSession* const before = scheduler.FindSession(worker.worker_id()); before != nullptr) {
    replaced = std::move(before->replaced);
    replaced.push_back(std::move(before->id));
    std::erase_if(replaced, [&](const std::string& session) {
      return session.empty() || session == request.session();
    });
    if (replaced.size() > kMostReplaced) replaced.erase(replaced.begin());
  }
  scheduler.Register(worker.worker_id(), worker.max_pack_size(), ledger_.Now(), experiment);
  *scheduler.FindSession(worker.worker_id()) = {.id = request.session(),
                                                .replaced = std::move(replaced)};
  ledger_.effects().log.emplace_back(
      platform::LogLevel::kInfo, absl::StrCat("worker ", worker.worker_id(), " of ", caller,
                                              " registered: ", worker.provenance().device(), " on ",
                                              worker.provenance().host()));
  const absl::Duration ahead = ToTime(request.measurements().time()) - ledger_.WallTime();
  if (request.measurements().has_time() && absl::AbsDuration(ahead) >= kWrongClock) {
    ledger_.effects().log.emplace_back(
        platform::LogLevel::kWarning,
        absl::StrCat("the clock of worker ", worker.worker_id(), " is ",
                     absl::FormatDuration(absl::Trunc(absl::AbsDuration(ahead), absl::Seconds(1))),
                     ahead > absl::ZeroDuration() ? " ahead of" : " behind",
                     " this machine's; set both by NTP"));
  }
  return absl::OkStatus();
}

absl::Status Leases::CheckVersion(const v1::WorkerDescription& worker) {
  if (worker.api_version() == platform::kWorkerApiVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the worker has version ", worker.api_version(),
                   " of the worker API, the server ", platform::kWorkerApiVersion, "; upgrade the ",
                   worker.api_version() < platform::kWorkerApiVersion ? "worker" : "server"));
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
  // Step of the last one that was passed over.
  int64_t lost = 0;
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
      // A drain during an evaluation stores a step twice. The lost one would be found by its step.
      if (lost == usable) {
        RETURN_IF_ERROR(store_.DeleteWorkerEvents(key, record.position));
      }
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
    lost = record.step;
  }
  if (usable == wanted && lost == 0) return Found::kUsable;
  if (usable == 0) {
    ASSIGN_OR_RETURN(const auto specification, SharedSpecificationOf(store_, trial.pack));
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
      usable == wanted ? "an earlier one of that step"
      : usable > 0     ? absl::StrCat("the one of step ", usable)
                       : "the beginning"));
  RETURN_IF_ERROR(ledger_.Append(trial, std::move(event)));
  ledger_.scheduler().SetCheckpoint(key, usable);
  return Found::kChanged;
}

absl::Status Leases::AddLease(const std::string& worker, const std::string& caller,
                              v1::SynchronizeResponse& response) {
  WorkerSession* const session = ledger_.scheduler().FindSession(worker);
  if (session == nullptr) return absl::OkStatus();
  if (const auto untold = ledger_.scheduler().LiveTrials(worker, session->untold);
      !untold.empty()) {
    // The answer that granted it was lost, or this call overtook it.
    ASSIGN_OR_RETURN(*response.mutable_lease(), MakeLease(session->untold, untold, caller));
    return absl::OkStatus();
  }
  if (ledger_.full()) {
    response.set_no_lease_reason("the server's disk is full");
    return absl::OkStatus();
  }
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
  if (decisions.trials.empty()) {
    response.set_no_lease_reason(ledger_.scheduler().WhyNothing(worker, ledger_.Now()));
    return absl::OkStatus();
  }
  LENGTHWISE_FAILPOINT("engine.lease.grant");
  RETURN_IF_ERROR(ledger_.Record(decisions));
  session->untold = decisions.trials.front().token;
  ASSIGN_OR_RETURN(
      *response.mutable_lease(),
      MakeLease(session->untold, ledger_.scheduler().LiveTrials(worker, session->untold), caller));
  return absl::OkStatus();
}

absl::StatusOr<v1::Lease> Leases::MakeLease(Token token, const std::vector<TrialKey>& trials,
                                            absl::string_view caller) {
  v1::Lease lease;
  lease.set_lease_id(ids_.Make(token, caller));
  lease.set_fencing_token(token);
  std::optional<PackRecord> pack;
  for (const TrialKey key : trials) {
    ASSIGN_OR_RETURN(const TrialRecord trial, ledger_.GetTrial(key));
    if (!pack.has_value()) {
      ASSIGN_OR_RETURN(pack, store_.FindPack(trial.pack));
      lease.set_shape(pack->pack_key);
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

std::vector<Token> Leases::TokensOf(const v1::SynchronizeRequest& request,
                                    const std::string& caller) const {
  std::vector<Token> tokens;
  for (const v1::HeldLease& lease : request.leases()) {
    // The scheduler has no lease 0, so the worker is told that it has lost a lease that is not its
    // own.
    const bool fits = ids_.Fits(lease.lease_id(), lease.fencing_token(), caller);
    tokens.push_back(fits ? lease.fencing_token() : 0);
  }
  return tokens;
}

absl::Status Leases::AddStatuses(const v1::SynchronizeRequest& request, const std::string& caller,
                                 v1::SynchronizeResponse& response) {
  auto lease = request.leases().begin();
  for (const Token token : TokensOf(request, caller)) {
    const LeaseDirective decided =
        ledger_.scheduler().DirectiveOf(request.worker().worker_id(), token);
    v1::SynchronizeResponse::LeaseStatus& status = *response.add_leases();
    status.set_lease_id((lease++)->lease_id());
    status.set_lost(decided.lost);
    status.set_preempted(!decided.preempted.empty());
    status.set_reason(decided.preempted);
    for (const TrialKey key : decided.cancelled) {
      ASSIGN_OR_RETURN(const std::optional<TrialRecord> trial, store_.FindTrial(key));
      if (!trial.has_value()) {
        // Its experiment was deleted before the worker heard of the cancellation. All trials of a
        // lease belong to one experiment, so the worker has nothing left to run.
        status.set_lost(true);
        continue;
      }
      status.add_cancelled_trials(TrialName(trial->experiment_id, trial->id));
    }
  }
  return absl::OkStatus();
}

absl::Status Leases::Release(const v1::SynchronizeRequest& request, const std::string& caller,
                             const std::vector<Token>& listed) {
  const std::string& worker = request.worker().worker_id();
  Scheduler& scheduler = ledger_.scheduler();
  // A repeated release changes nothing, because the scheduler no longer has the lease.
  for (const v1::ReleasedLease& released : request.released()) {
    const Token token = released.fencing_token();
    if (!ids_.Fits(released.lease_id(), token, caller)) continue;
    LENGTHWISE_FAILPOINT("engine.lease.release");
    if (released.unfit() && !scheduler.LiveTrials(worker, token).empty()) {
      platform::LogWarning(worker, " gives lease ", token, " back: ", released.reason());
      scheduler.SetUnfit(worker, token, released.reason(), ledger_.Now());
    }
    RETURN_IF_ERROR(
        ledger_.Record(scheduler.Release(worker, token, released.reason(), released.lost())));
  }
  Token& untold = scheduler.FindSession(worker)->untold;
  if (std::find(listed.begin(), listed.end(), untold) != listed.end()) untold = 0;
  // An earlier answer granted a lease that never reached the worker, or came too late for it.
  if (untold != 0 && !request.wants_lease()) {
    RETURN_IF_ERROR(ledger_.Record(
        scheduler.Release(worker, std::exchange(untold, 0), "it wanted no lease any more")));
  }
  return absl::OkStatus();
}

absl::Status Leases::Hear(const v1::SynchronizeRequest& request, const std::string& caller) {
  const std::string& worker = request.worker().worker_id();
  Scheduler& scheduler = ledger_.scheduler();
  // The id may change hands once its worker has been silent for a lease duration: that worker's
  // leases have expired then.
  const std::optional<std::string> owner = fleet_.PrincipalOf(worker);
  if (owner.value_or(caller) != caller && scheduler.IsAlive(worker, ledger_.Now())) {
    return absl::PermissionDeniedError(absl::StrCat(
        "worker.worker_id: \"", worker,
        "\" is a worker of another principal; choose another id, or call when it was silent for ",
        absl::FormatDuration(lease_duration_)));
  }
  const WorkerSession* const session = scheduler.FindSession(worker);
  if (session != nullptr && owner == caller &&
      absl::c_linear_search(session->replaced, request.session())) {
    return absl::FailedPreconditionError(
        absl::StrCat("another process has begun to work as \"", worker,
                     "\"; give each worker an id of its own (--worker_id)"));
  }
  const bool is_new = session == nullptr || owner != caller || session->id != request.session();
  if (is_new ? fleet_.HasStopped(worker, request.session(), request.number())
             : request.number() <= session->number) {
    return absl::AbortedError("a later call of this worker came first");
  }
  if (is_new) {
    RETURN_IF_ERROR(Register(request, caller));
  }
  LENGTHWISE_FAILPOINT("engine.heartbeat");
  scheduler.FindSession(worker)->number = request.number();
  const std::vector<Token> listed = TokensOf(request, caller);
  RETURN_IF_ERROR(scheduler.Heartbeat(worker, listed, ledger_.Now()));
  fleet_.Heartbeat(worker, request.measurements(), ledger_.Now(), ledger_.WallTime());
  for (const v1::PackCapacity& capacity : request.capacities()) {
    scheduler.SetCapacity(worker, capacity.shape(), capacity.max_pack_size());
  }
  for (const v1::TrialProgress& progress : request.progress()) {
    ledger_.effects().progress.push_back({.worker = worker, .progress = progress});
  }
  RETURN_IF_ERROR(Release(request, caller, listed));
  if (request.stopping()) {
    fleet_.Stop(worker, request.session(), request.number(),
                scheduler.FaultOf(worker, ledger_.Now()));
    scheduler.Unregister(worker);
    ledger_.effects().log.emplace_back(platform::LogLevel::kInfo,
                                       absl::StrCat("worker ", worker, " stops"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::HoldLeasesResponse> Leases::Hold(const v1::HoldLeasesRequest& request,
                                                    const std::string& caller) {
  RETURN_IF_ERROR(CheckHeld(request));
  if (!request.all() && !fleet_.PrincipalOf(request.worker()).has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no worker \"", request.worker(),
                                            "\"; `lengthwise workers` lists them"));
  }
  const std::string why = absl::StrCat(
      request.all() ? "paused" : "drained", caller.empty() ? "" : absl::StrCat(" by ", caller),
      request.reason().empty() ? "" : absl::StrCat(": ", request.reason()));
  RETURN_IF_ERROR(store_.PutHold({.worker = request.worker(), .why = why}));
  ledger_.scheduler().HoldBack(request.worker(), why);
  return v1::HoldLeasesResponse();
}

absl::StatusOr<v1::ResumeLeasesResponse> Leases::Resume(const v1::ResumeLeasesRequest& request) {
  RETURN_IF_ERROR(CheckHeld(request));
  if (ledger_.scheduler().HoldOf(request.worker()).empty()) {
    return absl::NotFoundError(
        request.all() ? "the queue is not paused"
                      : absl::StrCat("no worker \"", request.worker(),
                                     "\" is drained; `lengthwise workers` lists them"));
  }
  RETURN_IF_ERROR(store_.DeleteHold(request.worker()));
  ledger_.scheduler().HoldBack(request.worker(), "");
  return v1::ResumeLeasesResponse();
}

absl::StatusOr<v1::SynchronizeResponse> Leases::Answer(const v1::SynchronizeRequest& request,
                                                       const std::string& caller, bool grants) {
  v1::SynchronizeResponse response;
  *response.mutable_heartbeat_interval() = ToDuration(
      HeartbeatInterval(heartbeat_interval_, lease_duration_, ledger_.scheduler().fleet_size()));
  *response.mutable_lease_duration() = ToDuration(lease_duration_);
  RETURN_IF_ERROR(AddStatuses(request, caller, response));
  if (grants && request.wants_lease()) {
    RETURN_IF_ERROR(AddLease(request.worker().worker_id(), caller, response));
  }
  return response;
}

}  // namespace lengthwise::server
