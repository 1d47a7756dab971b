#include "server/scheduling/scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lengthwise::server {
namespace {

absl::Status NotRegistered(absl::string_view worker) {
  return absl::NotFoundError(
      absl::StrCat("worker \"", worker, "\" is not registered; register again"));
}

}  // namespace

Scheduler::Scheduler(const Options& options, Token next_token)
    : options_(options), next_token_(next_token) {}

void Scheduler::InsertRunnable(const ScheduledTrial& trial) {
  const PackId id(trial.pack, trial.checkpoint_step);
  Pack& pack = packs_[id];
  if (!pack.empty()) {
    const TrialKey first = *pack.begin();
    pack.insert(trial.key);
    if (first < trial.key) return;
    ready_.erase(TurnOf(trial.priority, first));
  } else {
    pack.insert(trial.key);
  }
  ready_.emplace(TurnOf(trial.priority, trial.key), id);
}

void Scheduler::RemoveRunnable(const ScheduledTrial& trial) {
  const PackId id(trial.pack, trial.checkpoint_step);
  const auto found = packs_.find(id);
  Pack& pack = found->second;
  const TrialKey first = *pack.begin();
  pack.erase(trial.key);
  if (first != trial.key) return;
  ready_.erase(TurnOf(trial.priority, first));
  if (pack.empty()) {
    packs_.erase(found);
  } else {
    ready_.emplace(TurnOf(trial.priority, *pack.begin()), id);
  }
}

void Scheduler::Enqueue(Trial& trial) {
  // Whether a back-off is over, MatureDelayed decides, which knows the time.
  trial.delayed = trial.data.not_before != absl::InfinitePast();
  if (trial.delayed) {
    delayed_.emplace(trial.data.not_before, trial.data.key);
  } else {
    InsertRunnable(trial.data);
  }
}

void Scheduler::Dequeue(Trial& trial) {
  if (trial.delayed) {
    delayed_.erase({trial.data.not_before, trial.data.key});
    trial.delayed = false;
  } else {
    RemoveRunnable(trial.data);
  }
}

void Scheduler::MatureDelayed(absl::Time now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    Trial& trial = trials_.at(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    trial.delayed = false;
    trial.data.not_before = absl::InfinitePast();
    InsertRunnable(trial.data);
  }
}

void Scheduler::Renew(Token token, Lease& lease, absl::Time now) {
  expiries_.erase({lease.expires, token});
  lease.expires = now + options_.lease_duration;
  expiries_.emplace(lease.expires, token);
}

void Scheduler::Add(const ScheduledTrial& trial) {
  Trial& added = trials_[trial.key];
  added.data = trial;
  Enqueue(added);
}

void Scheduler::RestoreLease(Token token, std::string worker,
                             const std::vector<ScheduledTrial>& running,
                             const std::vector<TrialKey>& cancelled, absl::Time now) {
  Lease& lease = leases_[token];
  lease.worker = std::move(worker);
  for (const ScheduledTrial& trial : running) {
    Trial& restored = trials_[trial.key];
    restored.data = trial;
    restored.lease = token;
    lease.live.push_back(trial.key);
    ++running_;
  }
  lease.cancelled = cancelled;
  Renew(token, lease, now);
}

void Scheduler::Register(absl::string_view worker, int32_t max_pack_size, absl::Time now) {
  workers_[std::string(worker)] = {.max_pack_size = std::max(max_pack_size, 1), .last_seen = now};
}

absl::StatusOr<std::vector<LeaseDirective>> Scheduler::Heartbeat(absl::string_view worker,
                                                                 absl::Span<const Token> leases,
                                                                 absl::Time now) {
  const auto registered = workers_.find(worker);
  if (registered == workers_.end()) return NotRegistered(worker);
  registered->second.last_seen = now;
  std::vector<LeaseDirective> directives;
  for (const Token token : leases) {
    LeaseDirective& directive = directives.emplace_back();
    directive.token = token;
    const auto lease = leases_.find(token);
    if (lease == leases_.end() || lease->second.worker != worker) {
      directive.lost = true;
      continue;
    }
    Renew(token, lease->second, now);
    directive.cancelled = lease->second.cancelled;
  }
  return directives;
}

std::vector<TrialKey> Scheduler::NextPack(absl::string_view worker, absl::Time now) {
  MatureDelayed(now);
  const auto registered = workers_.find(worker);
  if (registered == workers_.end() || ready_.empty()) return {};
  const Pack& pack = packs_.at(ready_.begin()->second);
  std::vector<TrialKey> trials;
  for (const TrialKey key : pack) {
    if (static_cast<int32_t>(trials.size()) == registered->second.max_pack_size) break;
    trials.push_back(key);
  }
  return trials;
}

absl::StatusOr<Decisions> Scheduler::Grant(absl::string_view worker, absl::Time now) {
  const auto registered = workers_.find(worker);
  if (registered == workers_.end()) return NotRegistered(worker);
  registered->second.last_seen = now;
  Decisions decisions;
  std::vector<TrialKey> pack = NextPack(worker, now);
  if (pack.empty()) return decisions;

  const Token token = next_token_++;
  Lease& lease = leases_[token];
  lease.worker = std::string(worker);
  Renew(token, lease, now);
  decisions.leases.push_back({.token = token, .worker = lease.worker, .granted = true});
  for (const TrialKey key : pack) {
    Trial& trial = trials_.at(key);
    Dequeue(trial);
    trial.lease = token;
    ++running_;
    ++trial.data.attempt;
    const int64_t step = trial.data.checkpoint_step;
    TrialChange& change = decisions.trials.emplace_back();
    change.trial = key;
    change.from = v1::QUEUED;
    change.to = v1::RUNNING;
    change.reason =
        absl::StrCat("leased to ", worker, " (lease ", token, ", attempt ", trial.data.attempt,
                     ") from ", step > 0 ? absl::StrCat("step ", step) : "the beginning");
    change.worker = lease.worker;
    change.token = token;
    change.attempt = trial.data.attempt;
    change.failures = trial.data.failures;
    change.resumed_from_step = step;
  }
  lease.live = std::move(pack);
  return decisions;
}

TrialChange Scheduler::Requeue(Trial& trial, std::string reason) {
  Lease& lease = leases_.at(trial.lease);
  TrialChange change;
  change.trial = trial.data.key;
  change.from = v1::RUNNING;
  change.to = v1::QUEUED;
  change.reason = std::move(reason);
  change.worker = lease.worker;
  change.token = trial.lease;
  change.attempt = trial.data.attempt;
  change.failures = trial.data.failures;
  change.not_before = trial.data.not_before;
  std::erase(lease.live, trial.data.key);
  trial.lease = 0;
  --running_;
  Enqueue(trial);
  return change;
}

TrialChange Scheduler::End(TrialKey key, v1::TrialState to, std::string reason) {
  Trial& trial = trials_.at(key);
  TrialChange change;
  change.trial = key;
  change.from = v1::QUEUED;
  change.to = to;
  change.reason = std::move(reason);
  change.attempt = trial.data.attempt;
  change.failures = trial.data.failures;
  if (trial.lease == 0) {
    Dequeue(trial);
  } else {
    Lease& lease = leases_.at(trial.lease);
    std::erase(lease.live, key);
    if (to == v1::CANCELLED) lease.cancelled.push_back(key);
    change.from = v1::RUNNING;
    change.worker = lease.worker;
    change.token = trial.lease;
    --running_;
  }
  trials_.erase(key);
  return change;
}

void Scheduler::EndLease(Token token, Decisions& decisions) {
  const auto lease = leases_.find(token);
  expiries_.erase({lease->second.expires, token});
  decisions.leases.push_back({.token = token, .worker = lease->second.worker, .granted = false});
  leases_.erase(lease);
}

void Scheduler::EndLeaseIfDone(Token token, Decisions& decisions) {
  const Lease& lease = leases_.at(token);
  // Cancelled trials keep a lease: its worker must hear of them at a heartbeat.
  if (lease.live.empty() && lease.cancelled.empty()) EndLease(token, decisions);
}

Decisions Scheduler::Release(absl::string_view worker, Token token, absl::string_view reason,
                             absl::Time now) {
  Decisions decisions;
  const auto lease = leases_.find(token);
  if (lease == leases_.end() || lease->second.worker != worker) return decisions;
  const std::vector<TrialKey> live = lease->second.live;
  for (const TrialKey key : live) {
    decisions.trials.push_back(
        Requeue(trials_.at(key), absl::StrCat(worker, " gave lease ", token, " back",
                                              reason.empty() ? "" : absl::StrCat(": ", reason))));
  }
  EndLease(token, decisions);
  return decisions;
}

absl::Duration Scheduler::BackOff(int32_t failures) const {
  absl::Duration wait = options_.first_back_off;
  for (int32_t i = 1; i < failures && wait < options_.max_back_off; ++i) wait *= 2;
  return std::min(wait, options_.max_back_off);
}

absl::StatusOr<Decisions> Scheduler::Finish(TrialKey key, Token token, v1::Outcome::Kind kind,
                                            absl::string_view reason, absl::Time now) {
  const auto found = trials_.find(key);
  if (token == 0 || found == trials_.end() || found->second.lease != token) {
    return absl::FailedPreconditionError(
        absl::StrCat("the trial does not belong to lease ", token, " any more"));
  }
  Trial& trial = found->second;
  const std::string worker = leases_.at(token).worker;
  Decisions decisions;
  if (kind == v1::Outcome::COMPLETED) {
    decisions.trials.push_back(
        End(key, v1::SUCCEEDED,
            absl::StrCat("completed by ", worker, " in attempt ", trial.data.attempt)));
  } else if (kind == v1::Outcome::FAILED_TEMPORARILY) {
    const int32_t failures = ++trial.data.failures;
    const std::string told = absl::StrCat(worker, " failed: ", reason, " (failure ", failures,
                                          " of ", options_.max_failed_attempts, " allowed)");
    if (failures >= options_.max_failed_attempts) {
      decisions.trials.push_back(End(key, v1::FAILED, told));
    } else {
      const absl::Duration wait = BackOff(failures);
      trial.data.not_before = now + wait;
      decisions.trials.push_back(
          Requeue(trial, absl::StrCat(told, "; tried again in ", absl::FormatDuration(wait))));
    }
  } else {
    decisions.trials.push_back(End(key, v1::FAILED, absl::StrCat(worker, " failed: ", reason)));
  }
  EndLeaseIfDone(token, decisions);
  return decisions;
}

Decisions Scheduler::Cancel(TrialKey trial, absl::string_view reason) {
  Decisions decisions;
  if (trials_.contains(trial)) {
    decisions.trials.push_back(End(trial, v1::CANCELLED, std::string(reason)));
  }
  return decisions;
}

Decisions Scheduler::Fail(TrialKey trial, absl::string_view reason) {
  Decisions decisions;
  const auto found = trials_.find(trial);
  if (found == trials_.end()) return decisions;
  const Token lease = found->second.lease;
  decisions.trials.push_back(End(trial, v1::FAILED, std::string(reason)));
  if (lease != 0) EndLeaseIfDone(lease, decisions);
  return decisions;
}

void Scheduler::SetCheckpoint(TrialKey key, int64_t step) {
  const auto found = trials_.find(key);
  if (found == trials_.end()) return;
  Trial& trial = found->second;
  const bool runnable = trial.lease == 0 && !trial.delayed;
  if (runnable) RemoveRunnable(trial.data);
  trial.data.checkpoint_step = step;
  if (runnable) InsertRunnable(trial.data);
}

Decisions Scheduler::Tick(absl::Time now) {
  Decisions decisions;
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const Token token = expiries_.begin()->second;
    const std::string worker = leases_.at(token).worker;
    const std::vector<TrialKey> live = leases_.at(token).live;
    for (const TrialKey key : live) {
      decisions.trials.push_back(Requeue(
          trials_.at(key),
          absl::StrCat("lease ", token, " of ", worker, " expired after ",
                       absl::FormatDuration(options_.lease_duration), " without a heartbeat")));
    }
    EndLease(token, decisions);
  }
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    const bool forget = now - worker->second.last_seen > options_.worker_memory;
    worker = forget ? workers_.erase(worker) : std::next(worker);
  }
  return decisions;
}

absl::Time Scheduler::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  if (!expiries_.empty()) deadline = std::min(deadline, expiries_.begin()->first);
  if (!delayed_.empty()) deadline = std::min(deadline, delayed_.begin()->first);
  return deadline;
}

bool Scheduler::HasRunnable(absl::Time now) {
  MatureDelayed(now);
  return !ready_.empty();
}

}  // namespace lengthwise::server
