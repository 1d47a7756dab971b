#include "server/coordination/ledger.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"
#include "server/coordination/retention.h"

namespace lengthwise::server {
namespace {

// Trials whose attention maps are deleted in one transaction. Each may have some MiB.
constexpr int64_t kExpiredAtOnce = 16;

}  // namespace

ScheduledTrial ToScheduled(const TrialRecord& record) {
  ScheduledTrial trial = {.key = record.key,
                          .pack = record.pack,
                          .checkpoint_step = record.checkpoint_step,
                          .past = record};
  trial.past.not_before = NoTime();
  return trial;
}

Clock SystemClock() {
  const absl::Time start = absl::Now();
  const auto origin = std::chrono::steady_clock::now();
  return {.steady =
              [start, origin] {
                return start + absl::FromChrono(std::chrono::steady_clock::now() - origin);
              },
          .wall = [] { return absl::Now(); }};
}

Ledger::Ledger(const Scheduler::Options& options, Storage& storage, Clock clock)
    : options_(options), storage_(storage), store_(storage.writer()), clock_(std::move(clock)) {}

absl::Status Ledger::Rebuild() {
  // Nothing of the failed transaction may be seen. A lost worker is no part of it.
  effects_ = Effects{.lost_workers = std::move(effects_.lost_workers)};
  misdated_.clear();
  leases_without_trials_.clear();
  LENGTHWISE_FAILPOINT_OR_RETURN("engine.rebuild.before");
  ASSIGN_OR_RETURN(std::unique_ptr<StorageReader> opened, storage_.Read());
  StorageReader& reader = *opened;
  ASSIGN_OR_RETURN(const int64_t next_token, reader.NextToken());
  auto scheduler = std::make_unique<Scheduler>(options_, next_token);

  struct Held {
    std::string worker;
    int32_t size = 0;
    std::vector<ScheduledTrial> running;
    PackTraits traits;
    std::vector<TrialKey> cancelled;
  };
  absl::btree_map<Token, Held> held;
  std::vector<TrialRecord> running;
  absl::Status status =
      reader.ForEachUnendedTrial([&](const TrialRecord& record, const TrialPlacement& placement) {
        ScheduledTrial trial = ToScheduled(record);
        const PackTraits traits = {.priority = placement.priority,
                                   .owner = placement.owner,
                                   .shape = placement.pack_key,
                                   .experiment = record.experiment_id,
                                   .most = MostInLease(placement.pack_bytes)};
        if (record.state == v1::RUNNING) {
          Held& lease = held[record.token];
          lease.worker = record.worker;
          lease.running.push_back(trial);
          lease.traits = traits;
          running.push_back(record);
          return;
        }
        if (record.not_before != NoTime()) {
          // A later time comes from a clock that was set back since. The next transaction stores
          // the earlier time; otherwise the trial would wait again after every restart.
          const absl::Time latest = Now() + scheduler->BackOff(record.failures);
          trial.past.not_before = std::min(record.not_before, latest);
          if (latest < record.not_before) {
            misdated_.push_back(record);
            misdated_.back().not_before = latest;
          }
        }
        scheduler->Add(trial, traits);
      });
  if (!status.ok()) return status;
  for (const TrialRecord& trial : running) {
    ASSIGN_OR_RETURN(const std::optional<PackRecord> pack, reader.FindPack(trial.pack));
    if (!pack.has_value()) continue;
    const auto specification = ToTrialSpecification(trial, *pack, reader.name());
    // Only the display of this trial is missing: damage to one trial must not keep the server from
    // starting. The trial's next lease reports it.
    if (!specification.ok()) continue;
    effects_.running.push_back(StartOf(trial, *pack, *specification));
  }
  ASSIGN_OR_RETURN(const std::vector<LeaseRecord> leases, reader.ListLeases());
  for (const LeaseRecord& lease : leases) {
    ASSIGN_OR_RETURN(std::vector<int64_t> cancelled, reader.ListCancelledTrials(lease.token));
    // All its trials were deleted. The scheduler keeps no lease without trials, so none of its
    // decisions would end this one.
    if (cancelled.empty() && !held.contains(lease.token)) {
      leases_without_trials_.push_back(lease.token);
      continue;
    }
    held[lease.token].worker = lease.worker;
    held[lease.token].size = lease.size;
    held[lease.token].cancelled = std::move(cancelled);
  }
  // The restored leases have a full duration from now on, however long it takes to start serving.
  const absl::Time now = Now();
  scheduler->Hear(now);
  for (auto& [token, lease] : held) {
    scheduler->RestoreLease(token, lease.worker, lease.size, lease.running, lease.traits,
                            lease.cancelled, now);
  }
  if (scheduler_ != nullptr) scheduler->CopyWorkers(*scheduler_);
  ASSIGN_OR_RETURN(const std::vector<HoldRecord> holds, reader.ListHolds());
  for (const HoldRecord& hold : holds) scheduler->HoldBack(hold.worker, hold.why);
  scheduler_ = std::move(scheduler);
  return absl::OkStatus();
}

absl::Status Ledger::Begin() {
  absl::Status status = store_.Begin();
  for (const TrialRecord& trial : std::exchange(misdated_, {})) {
    if (status.ok()) status = store_.UpdateTrial(trial, trial.state);
  }
  for (const Token token : std::exchange(leases_without_trials_, {})) {
    if (status.ok()) status = store_.DeleteLease(token, NoTime());
  }
  return status;
}

absl::Status Ledger::Commit() { return store_.Commit(); }

absl::Status Ledger::Tick() {
  Decisions decisions = scheduler_->Tick(Now());
  absl::c_move(decisions.lost_workers, std::back_inserter(effects_.lost_workers));
  absl::flat_hash_set<Token> expired;
  for (const TrialChange& change : decisions.trials) expired.insert(change.token);
  if (!expired.empty()) LENGTHWISE_FAILPOINT("engine.lease.expire");
  effects_.lease_expiries += static_cast<int64_t>(expired.size());
  for (const LeaseChange& lease : decisions.leases) {
    if (!expired.contains(lease.token)) continue;  // its trials were cancelled before
    effects_.log.emplace_back(
        platform::LogLevel::kWarning,
        absl::StrCat("lease ", lease.token, " of ", lease.worker, " expired after ",
                     absl::FormatDuration(options_.lease_duration), " without a heartbeat"));
  }
  return Record(decisions);
}

absl::StatusOr<TrialRecord> Ledger::GetTrial(int64_t key) {
  ASSIGN_OR_RETURN(std::optional<TrialRecord> found, store_.FindTrial(key));
  if (!found.has_value()) {
    return absl::InternalError(absl::StrCat("trial number ", key, " is not in the store"));
  }
  return *std::move(found);
}

absl::Status Ledger::Append(const TrialRecord& trial, v1::Event event) {
  if (!event.has_time()) *event.mutable_time() = ToTimestamp(clock_.wall());
  EventRecord record = ToEventRecord(std::move(event));
  record.experiment = trial.experiment;
  record.trial = trial.key;
  ++effects_.events;
  effects_.experiments.insert(trial.experiment_id);
  return store_.AppendEvent(record);
}

absl::Status Ledger::Record(const Decisions& decisions, int64_t step, const v1::Outcome* outcome) {
  for (const LeaseChange& change : decisions.leases) {
    CountLeaseChange(change, effects_.decided);
    if (change.granted) effects_.granted.push_back(change.size);
    RETURN_IF_ERROR(change.granted ? store_.InsertLease({.token = change.token,
                                                         .worker = change.worker,
                                                         .grant_time = clock_.wall(),
                                                         .size = change.size,
                                                         .owner = change.owner})
                                   : store_.DeleteLease(change.token, clock_.wall()));
  }
  for (const TrialChange& change : decisions.trials) {
    RETURN_IF_ERROR(RecordChange(change, step, outcome));
  }
  return absl::OkStatus();
}

absl::Status Ledger::RecordChange(const TrialChange& change, int64_t step,
                                  const v1::Outcome* outcome) {
  ASSIGN_OR_RETURN(TrialRecord found, GetTrial(change.trial));
  TrialRecord& trial = found;
  const v1::TrialState previous = trial.state;
  CountTrialChange(change, trial, outcome, effects_.decided);
  trial.state = change.to;
  trial.reason = change.reason;
  static_cast<TrialPast&>(trial) = change.past;
  const bool running = change.to == v1::RUNNING;
  const bool ended = !running && change.to != v1::QUEUED;
  if (change.to == v1::QUEUED && previous != v1::QUEUED) trial.queue_time = clock_.wall();
  if (running) {
    trial.worker = change.worker;
    trial.token = change.token;
    if (trial.start_time == NoTime()) trial.start_time = clock_.wall();
    if (trial.attempt == 1) {
      RETURN_IF_ERROR(store_.AddUsage(trial.experiment, /*trials=*/1, /*steps=*/0));
    }
    if (trial.attempt > 1) {
      // The new attempt measures again everything after the checkpoint. Delete by position, not by
      // step: the final evaluation has the step of the last checkpoint but comes after it.
      ASSIGN_OR_RETURN(const EventRecord checkpoint, FindCheckpointEvent(store_, trial));
      LENGTHWISE_FAILPOINT("engine.events.replace");
      RETURN_IF_ERROR(store_.DeleteWorkerEvents(trial.key, checkpoint.position));
    }
  }
  if (ended) LENGTHWISE_FAILPOINT("engine.trial.end");
  trial.end_time = ended ? clock_.wall() : NoTime();
  if (change.to == v1::SUCCEEDED && outcome != nullptr) {
    trial.outcome = outcome->SerializeAsString();
  }
  // Before Retain, which may set it to 0.
  const int64_t checkpoint_step = trial.checkpoint_step;
  if (ended) {
    RETURN_IF_ERROR(Retain(trial));
  }
  RETURN_IF_ERROR(store_.UpdateTrial(trial, previous));
  effects_.trials[trial.experiment_id].insert(trial.key);
  if (previous == v1::RUNNING) {
    effects_.running.emplace_back().name = TrialName(trial.experiment_id, trial.id);
  }

  v1::Event event;
  event.set_attempt(trial.attempt);
  event.set_step(running ? change.resumed_from_step : step >= 0 ? step : checkpoint_step);
  v1::StateChange& state_change = *event.mutable_state_change();
  state_change.set_from(change.from);
  state_change.set_to(change.to);
  state_change.set_reason(change.reason);
  state_change.set_actor(change.actor);
  if (running) state_change.set_worker(change.worker);
  state_change.set_resumed_from_step(change.resumed_from_step);
  return Append(trial, std::move(event));
}

absl::Status Ledger::StoreCheckpoint(TrialRecord& trial, int64_t step) {
  LENGTHWISE_FAILPOINT("engine.checkpoint.store");
  trial.checkpoint_step = step;
  trial.losses = 0;
  RETURN_IF_ERROR(store_.UpdateTrial(trial, trial.state));
  scheduler_->SetCheckpoint(trial.key, step);
  ASSIGN_OR_RETURN(const auto checkpoints,
                   store_.NewestEvents(trial.key, v1::Event::kCheckpoint, kKeptCheckpoints + 1));
  if (static_cast<int64_t>(checkpoints.size()) <= kKeptCheckpoints) return absl::OkStatus();
  const absl::StatusOr<v1::Checkpoint> oldest = ToCheckpoint(checkpoints.back(), store_.name());
  // A damaged event does not say which file it meant. The file stays until the trial has ended.
  if (!oldest.ok()) return absl::OkStatus();
  // Only the oldest, not all others: the next checkpoint may already be uploaded.
  return store_.InsertSweep({.experiment = trial.experiment_id,
                             .trial = trial.id,
                             .sha256 = oldest->sha256(),
                             .attempt = trial.attempt});
}

absl::StatusOr<bool> Ledger::Expire(absl::Duration retention, Expiry& expiry) {
  // Again for each part: a trial may have been retried since the last.
  ASSIGN_OR_RETURN(const int64_t found,
                   store_.FindExpired(expiry.experiment, clock_.wall(), retention));
  if (found == 0) return false;
  if (found != expiry.experiment) expiry = {.experiment = found};
  ASSIGN_OR_RETURN(const std::vector<int64_t> trials,
                   store_.ListTrialsWithArtifacts(found, expiry.next_index, kExpiredAtOnce));
  if (trials.empty()) {
    RETURN_IF_ERROR(store_.SetExpired(found));
    return true;
  }
  for (const int64_t key : trials) {
    ASSIGN_OR_RETURN(TrialRecord trial, GetTrial(key));
    if (std::exchange(expiry.next_index, trial.index + 1) == 0) {
      effects_.log.emplace_back(
          platform::LogLevel::kInfo,
          absl::StrCat("deleting the checkpoints and maps of ", trial.experiment_id,
                       ", which ended longer ago than its retention"));
    }
    trial.checkpoint_step = 0;
    RETURN_IF_ERROR(store_.UpdateTrial(trial, trial.state));
    RETURN_IF_ERROR(store_.DeleteMaps(key));
    RETURN_IF_ERROR(store_.InsertSweep({.experiment = trial.experiment_id, .trial = trial.id}));
    effects_.experiments.insert(trial.experiment_id);
  }
  return true;
}

absl::Status Ledger::Retain(TrialRecord& trial) {
  // It never ran, so it has no artifacts.
  if (trial.attempt == 0 && trial.checkpoint_step == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<PackRecord> pack, store_.FindPack(trial.pack));
  const int64_t kept = CheckpointsThatStay(pack.value_or(PackRecord()), trial.state);
  if (kept == 0) trial.checkpoint_step = 0;
  if (trial.state == v1::SUCCEEDED && trial.attempt == 1) {
    ASSIGN_OR_RETURN(const auto checkpoints,
                     store_.NewestEvents(trial.key, v1::Event::kCheckpoint, kept + 1));
    if (static_cast<int64_t>(checkpoints.size()) <= kept) return absl::OkStatus();
  }
  // Other attempts may have uploaded what no event names.
  return store_.InsertSweep({.experiment = trial.experiment_id, .trial = trial.id});
}

}  // namespace lengthwise::server
