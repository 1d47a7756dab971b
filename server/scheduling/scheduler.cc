#include "server/scheduling/scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lengthwise::server {
namespace {

// Maximum number of capacities kept per worker, to bound the memory.
constexpr size_t kMaxCapacities = 100;
constexpr size_t kMaxShapeBytes = 200;

// After a start with leases, lost workers count against no trial for this many lease durations:
// what ended the server may have ended them too, or be about to.
constexpr int kUnsettledLeases = 10;

// How long an unfit worker gets no packs of a shape: the first time, and at most.
constexpr absl::Duration kFirstPause = absl::Minutes(1);
constexpr absl::Duration kLongestPause = absl::Minutes(10);
// A worker whose first trials fail where others' do not is unfit after this many.
constexpr int32_t kFirstTrials = 3;

constexpr char kScheduler[] = "scheduler";

absl::Status NotRegistered(absl::string_view worker) {
  return absl::NotFoundError(
      absl::StrCat("worker \"", worker, "\" is not registered; register again"));
}

std::string WorkerActor(absl::string_view worker) { return absl::StrCat("worker ", worker); }

}  // namespace

Scheduler::Scheduler(const Options& options, Token next_token)
    : options_(options), next_token_(next_token) {}

Scheduler::Trial& Scheduler::Remember(const ScheduledTrial& trial, const PackTraits& traits) {
  const auto [pack, is_new] = packs_.try_emplace(trial.pack);
  if (is_new) pack->second.traits = traits;
  ++pack->second.trials;
  Trial& remembered = trials_[trial.key];
  remembered.data = trial;
  return remembered;
}

// The trial must be in no lease and no queue: they refer to it by key.
void Scheduler::Forget(TrialKey key) {
  const auto trial = trials_.find(key);
  const auto pack = packs_.find(trial->second.data.pack);
  if (--pack->second.trials == 0) packs_.erase(pack);
  trials_.erase(trial);
}

void Scheduler::InsertRunnable(const ScheduledTrial& trial) {
  const PackTraits& traits = TraitsOf(trial);
  queue_.Insert(IdOf(trial), traits.priority, traits.owner, traits.experiment, trial.key);
}

const PackId* Scheduler::NextFor(absl::string_view name, const Worker& worker,
                                 absl::Time now) const {
  if (holds_.contains("") || holds_.contains(name)) return nullptr;
  return queue_.Next(worker.experiment, [&](const PackId& id) {
    return worker.unfit.empty() || !UnfitFor(worker, packs_.at(id.pack).traits.shape, now);
  });
}

const Scheduler::Unfit* Scheduler::UnfitFor(const Worker& worker, absl::string_view shape,
                                            absl::Time now) {
  for (const auto& [unfit_for, unfit] : worker.unfit) {
    const bool concerns = shape.empty() || unfit_for.empty() || unfit_for == shape;
    if (concerns && unfit.until > now) return &unfit;
  }
  return nullptr;
}

void Scheduler::MarkUnfit(Worker& worker, const std::string& shape, absl::string_view why,
                          absl::Time now) {
  // As for capacities: what is forgotten is learned again.
  if (worker.unfit.size() >= kMaxCapacities && !worker.unfit.contains(shape)) worker.unfit.clear();
  Unfit& unfit = worker.unfit[shape];
  unfit.pause = std::clamp(2 * unfit.pause, kFirstPause, kLongestPause);
  unfit.until = now + unfit.pause;
  unfit.why = std::string(why);
}

void Scheduler::SetUnfit(absl::string_view worker, Token token, absl::string_view why,
                         absl::Time now) {
  const auto registered = workers_.find(worker);
  const auto lease = leases_.find(token);
  if (registered == workers_.end() || lease == leases_.end() || lease->second.worker != worker ||
      lease->second.live.empty()) {
    return;
  }
  MarkUnfit(registered->second, packs_.at(lease->second.pack).traits.shape, why, now);
}

bool Scheduler::FailsAlone(absl::string_view worker, absl::Time now) const {
  const auto registered = workers_.find(worker);
  if (registered == workers_.end() || registered->second.proven) return false;
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& other) {
    return other.first != worker && other.second.failed == 0 && IsAlive(other.first, now) &&
           (other.second.proven || busy_.contains(other.first));
  });
}

// The trial must be in no lease and not queued. IdOf(trial), under which it is queued, must not
// change until Dequeue, which looks it up again.
void Scheduler::Enqueue(Trial& trial) {
  // MatureDelayed, which knows the time, decides whether the back-off is over.
  trial.delayed = trial.data.past.not_before != absl::UnixEpoch();
  if (trial.delayed) {
    delayed_.emplace(trial.data.past.not_before, trial.data.key);
  } else {
    InsertRunnable(trial.data);
  }
}

void Scheduler::Dequeue(Trial& trial) {
  if (trial.delayed) {
    delayed_.erase({trial.data.past.not_before, trial.data.key});
    postponed_.erase(trial.data.key);
    trial.delayed = false;
  } else {
    queue_.Remove(IdOf(trial.data), trial.data.key);
  }
}

void Scheduler::MatureDelayed(absl::Time now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    Trial& trial = trials_.at(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    postponed_.erase(trial.data.key);
    trial.delayed = false;
    trial.data.past.not_before = absl::UnixEpoch();
    InsertRunnable(trial.data);
  }
}

void Scheduler::Renew(Token token, Lease& lease, absl::Time now) {
  expiries_.erase({lease.expires, token});
  lease.expires = now + options_.lease_duration;
  expiries_.emplace(lease.expires, token);
}

void Scheduler::Hold(Trial& trial, Token token, Lease& lease) {
  if (lease.live.empty()) ++busy_[lease.worker];
  lease.live.push_back(trial.data.key);
  lease.pack = trial.data.pack;
  trial.lease = token;
  queue_.AddRunning(TraitsOf(trial.data).owner, 1);
}

// May leave a lease without live trials in leases_. The caller must then call EndLease or
// EndLeaseIfDone, unless the lease has cancelled trials that its worker must hear of.
void Scheduler::LetGo(Trial& trial) {
  const Token token = trial.lease;
  Lease& lease = leases_.at(token);
  std::erase(lease.live, trial.data.key);
  trial.lease = 0;
  queue_.AddRunning(TraitsOf(trial.data).owner, -1);
  if (!lease.live.empty()) return;
  Unrank(token, lease);
  const auto busy = busy_.find(lease.worker);
  if (--busy->second == 0) busy_.erase(busy);
}

void Scheduler::Add(const ScheduledTrial& trial, const PackTraits& traits) {
  Enqueue(Remember(trial, traits));
}

void Scheduler::RestoreLease(Token token, std::string worker, int32_t size,
                             const std::vector<ScheduledTrial>& running, const PackTraits& traits,
                             const std::vector<TrialKey>& cancelled, absl::Time now) {
  Lease& lease = leases_[token];
  lease.worker = std::move(worker);
  // An older release did not record the size.
  lease.size = size > 0 ? size : static_cast<int32_t>(running.size() + cancelled.size());
  for (const ScheduledTrial& trial : running) Hold(Remember(trial, traits), token, lease);
  if (!cancelled.empty()) NoteDirective(token, lease);
  lease.cancelled = cancelled;
  Renew(token, lease, now);
  Rank(token, lease, now);
  losses_count_from_ = now + kUnsettledLeases * options_.lease_duration;
}

void Scheduler::Register(absl::string_view worker, int32_t max_pack_size, absl::Time now,
                         absl::string_view experiment) {
  if (!IsAlive(worker, now)) ++fleet_size_;
  Worker& registered = workers_[std::string(worker)];
  registered.max_pack_size = std::max(max_pack_size, 1);
  See(registered, now);
  registered.experiment = std::string(experiment);
  // It may have been mended.
  registered.unfit.clear();
  registered.failed = 0;
  registered.proven = false;
  if (experiment.empty()) return;
  // Leases that were restored before the worker registered again were ranked.
  for (auto& [token, lease] : leases_) {
    if (lease.worker == worker) Unrank(token, lease);
  }
}

void Scheduler::See(Worker& worker, absl::Time now) {
  worker.last_seen = now;
  worker.silence = absl::ZeroDuration();
  worker.lost = false;
  next_loss_ = std::min(next_loss_, now + options_.lease_duration);
}

void Scheduler::HoldBack(absl::string_view worker, absl::string_view why) {
  if (why.empty()) {
    holds_.erase(worker);
    return;
  }
  holds_[std::string(worker)] = std::string(why);
  for (auto& [token, lease] : leases_) {
    if (lease.worker == worker && !lease.live.empty() && lease.preempted.empty()) {
      Recall(token, lease, std::string(why));
    }
  }
}

void Scheduler::Unregister(absl::string_view worker) { workers_.erase(worker); }

WorkerSession* Scheduler::FindSession(absl::string_view worker) {
  const auto registered = workers_.find(worker);
  return registered == workers_.end() ? nullptr : &registered->second.session;
}

std::vector<TrialKey> Scheduler::LiveTrials(absl::string_view worker, Token token) const {
  const auto lease = leases_.find(token);
  if (lease == leases_.end() || lease->second.worker != worker) return {};
  return lease->second.live;
}

absl::Status Scheduler::Heartbeat(absl::string_view worker, absl::Span<const Token> leases,
                                  absl::Time now) {
  const auto registered = workers_.find(worker);
  if (registered == workers_.end()) return NotRegistered(worker);
  See(registered->second, now);
  for (const Token token : leases) {
    const auto lease = leases_.find(token);
    if (lease != leases_.end() && lease->second.worker == worker) Renew(token, lease->second, now);
  }
  return absl::OkStatus();
}

LeaseDirective Scheduler::DirectiveOf(absl::string_view worker, Token token) const {
  const auto lease = leases_.find(token);
  // Its trials were requeued: the worker must stop them, since another may run them now.
  if (lease == leases_.end() || lease->second.worker != worker) return {.lost = true};
  return {.cancelled = lease->second.cancelled, .preempted = lease->second.preempted};
}

void Scheduler::ExpectSilence(absl::string_view worker, absl::Duration hold) {
  const auto registered = workers_.find(worker);
  if (registered != workers_.end()) registered->second.silence = hold;
}

std::vector<std::string> Scheduler::TakeWorkersToTell() {
  std::vector<std::string> workers;
  for (const Token token : to_tell_) workers.push_back(leases_.at(token).worker);
  to_tell_.clear();
  return workers;
}

void Scheduler::SetCapacity(absl::string_view worker, absl::string_view shape,
                            int32_t max_pack_size) {
  const auto registered = workers_.find(worker);
  if (registered == workers_.end() || shape.size() > kMaxShapeBytes) return;
  auto& capacities = registered->second.capacities;
  // Forgotten limits are learned again from the next failure or report.
  if (capacities.size() >= kMaxCapacities && !capacities.contains(shape)) capacities.clear();
  capacities[std::string(shape)] = std::max(max_pack_size, 1);
}

std::vector<TrialKey> Scheduler::NextPack(absl::string_view worker, absl::Time now) {
  MatureDelayed(now);
  const auto registered = workers_.find(worker);
  if (registered == workers_.end()) return {};
  const PackId* const id = NextFor(worker, registered->second, now);
  if (id == nullptr) return {};
  int32_t size = registered->second.max_pack_size;
  const auto capacity = registered->second.capacities.find(packs_.at(id->pack).traits.shape);
  if (capacity != registered->second.capacities.end()) size = std::min(size, capacity->second);
  if (id->limit > 0) size = std::min(size, id->limit);
  if (const int32_t most = packs_.at(id->pack).traits.most; most > 0) size = std::min(size, most);
  std::vector<TrialKey> trials;
  for (const TrialKey key : queue_.trials_of(*id)) {
    if (static_cast<int32_t>(trials.size()) == size) break;
    trials.push_back(key);
  }
  return trials;
}

absl::StatusOr<Decisions> Scheduler::Grant(absl::string_view worker, absl::Time now) {
  const auto registered = workers_.find(worker);
  if (registered == workers_.end()) return NotRegistered(worker);
  registered->second.last_seen = now;
  Decisions decisions;
  const std::vector<TrialKey> pack = NextPack(worker, now);
  if (pack.empty()) return decisions;

  // No two leases ever have the same token: after a restart, tokens continue behind the largest
  // that the store has recorded (StorageReader::NextToken).
  const Token token = next_token_++;
  Lease& lease = leases_[token];
  lease.worker = std::string(worker);
  lease.size = static_cast<int32_t>(pack.size());
  Renew(token, lease, now);
  decisions.leases.push_back({.token = token,
                              .worker = lease.worker,
                              .granted = true,
                              .size = lease.size,
                              .owner = TraitsOf(trials_.at(pack.front()).data).owner});
  for (const TrialKey key : pack) {
    Trial& trial = trials_.at(key);
    Dequeue(trial);
    // Sequence numbers of events count by attempt, so each lease needs an attempt of its own.
    ++trial.data.past.attempt;
    const int64_t step = trial.data.checkpoint_step;
    TrialChange change = ChangeOf(
        trial, v1::RUNNING, kScheduler,
        absl::StrCat("leased to ", worker, " (lease ", token, ", attempt ", trial.data.past.attempt,
                     ") from ", step > 0 ? absl::StrCat("step ", step) : "the beginning"));
    change.worker = lease.worker;
    change.token = token;
    change.resumed_from_step = step;
    decisions.trials.push_back(std::move(change));
    Hold(trial, token, lease);
  }
  queue_.Serve(packs_.at(lease.pack).traits.owner, token);
  Rank(token, lease, now);
  return decisions;
}

TrialChange Scheduler::ChangeOf(const Trial& trial, v1::TrialState to, std::string actor,
                                std::string reason) const {
  TrialChange change;
  change.trial = trial.data.key;
  change.from = trial.lease == 0 ? v1::QUEUED : v1::RUNNING;
  change.to = to;
  change.actor = std::move(actor);
  change.reason = std::move(reason);
  if (trial.lease != 0) change.worker = leases_.at(trial.lease).worker;
  change.token = trial.lease;
  change.past = trial.data.past;
  return change;
}

TrialChange Scheduler::Requeue(Trial& trial, std::string actor, std::string reason) {
  TrialChange change = ChangeOf(trial, v1::QUEUED, std::move(actor), std::move(reason));
  // Enqueue before LetGo: an owner with neither waiting nor running trials is forgotten, and would
  // lose its turn.
  Enqueue(trial);
  LetGo(trial);
  return change;
}

TrialChange Scheduler::End(TrialKey key, v1::TrialState to, std::string actor, std::string reason) {
  Trial& trial = trials_.at(key);
  TrialChange change = ChangeOf(trial, to, std::move(actor), std::move(reason));
  if (trial.lease == 0) {
    Dequeue(trial);
  } else {
    if (to == v1::CANCELLED) {
      Lease& lease = leases_.at(trial.lease);
      NoteDirective(trial.lease, lease);
      lease.cancelled.push_back(key);
    }
    LetGo(trial);
  }
  Forget(key);
  return change;
}

void Scheduler::NoteDirective(Token token, const Lease& lease) {
  if (!lease.has_directive()) ++directed_[lease.worker];
  to_tell_.insert(token);
}

void Scheduler::EndLease(Token token, Decisions& decisions) {
  const auto lease = leases_.find(token);
  if (!lease->second.preempted.empty()) --preempted_;
  expiries_.erase({lease->second.expires, token});
  to_tell_.erase(token);
  if (lease->second.has_directive()) {
    const auto directed = directed_.find(lease->second.worker);
    if (--directed->second == 0) directed_.erase(directed);
  }
  decisions.leases.push_back({.token = token, .worker = lease->second.worker});
  leases_.erase(lease);
}

void Scheduler::EndLeaseIfDone(Token token, Decisions& decisions) {
  const Lease& lease = leases_.at(token);
  // Cancelled trials keep a lease alive, so that its worker hears of them at a heartbeat.
  if (lease.live.empty() && lease.cancelled.empty()) EndLease(token, decisions);
}

void Scheduler::GiveUp(Token token, const std::string& actor, const std::string& reason, bool lost,
                       Decisions& decisions) {
  const Lease& lease = leases_.at(token);
  const std::vector<TrialKey> live = lease.live;
  for (const TrialKey key : live) {
    Trial& trial = trials_.at(key);
    TrialPast& past = trial.data.past;
    if (!lease.preempted.empty()) {
      ++past.preemptions;
    } else if (lost && ++past.losses > 1) {
      const std::string counted =
          absl::StrCat(reason, "; ", past.losses,
                       " workers in a row were lost with this trial and no new checkpoint");
      decisions.trials.push_back(
          past.losses < options_.max_losses
              ? Requeue(trial, actor, absl::StrCat(counted, ": it continues alone"))
              : End(key, v1::FAILED, actor,
                    absl::StrCat(
                        counted,
                        ", the last one with this trial alone: the trial may be what ends "
                        "them. The workers' logs, and the kernel's (dmesg) for a lack of "
                        "memory, may say why; `lengthwise retry` gives it another chance")));
      continue;
    }
    decisions.trials.push_back(Requeue(trial, actor, reason));
  }
  EndLease(token, decisions);
}

Decisions Scheduler::Release(absl::string_view worker, Token token, absl::string_view reason,
                             bool lost) {
  Decisions decisions;
  const auto found = leases_.find(token);
  if (found == leases_.end() || found->second.worker != worker) return decisions;
  const Lease& lease = found->second;
  const absl::string_view why = lease.preempted.empty() ? reason : lease.preempted;
  // As in FailTemporarily: where others work, a worker that has completed nothing is at fault.
  const auto registered = workers_.find(worker);
  lost =
      lost && (registered == workers_.end() || !FailsAlone(worker, registered->second.last_seen));
  GiveUp(token, lease.preempted.empty() ? WorkerActor(worker) : kScheduler,
         absl::StrCat(worker, " gave lease ", token, " back",
                      why.empty() ? "" : absl::StrCat(": ", why)),
         lost, decisions);
  return decisions;
}

Decisions Scheduler::EndLeases(absl::string_view what) {
  Decisions decisions;
  while (!leases_.empty()) {
    const Token token = leases_.begin()->first;
    GiveUp(token, kScheduler,
           absl::StrCat("lease ", token, " of ", leases_.at(token).worker, " ", what),
           /*lost=*/false, decisions);
  }
  return decisions;
}

absl::Duration Scheduler::BackOff(int32_t failures) const {
  absl::Duration wait = options_.first_back_off;
  for (int32_t i = 1; i < failures && wait < options_.max_back_off; ++i) wait *= 2;
  return std::min(wait, options_.max_back_off);
}

TrialChange Scheduler::FailTemporarily(Trial& trial, const std::string& worker, int64_t step,
                                       absl::string_view reason, absl::Time now) {
  TrialPast& past = trial.data.past;
  const std::string failure = FailureClass(reason);
  const bool alone = FailsAlone(worker, now);
  if (const auto registered = workers_.find(worker);
      registered != workers_.end() && ++registered->second.failed >= kFirstTrials && alone) {
    const std::string why =
        absl::StrCat("its first ", registered->second.failed,
                     " trials failed, where other workers' do not; the last one: ", reason);
    MarkUnfit(registered->second, "", why, now);
    return Requeue(trial, WorkerActor(worker),
                   absl::StrCat("the machine of ", worker,
                                " may be at fault, so this is no failure "
                                "of the trial: ",
                                why));
  }
  const bool same_machine = alone && trial.failed_on == worker;
  const bool again =
      !same_machine && past.failures > 0 && past.failure == failure && past.failure_step == step;
  trial.failed_on = worker;
  ++past.failures;
  past.failure = failure;
  past.failure_step = step;
  const std::string told = absl::StrCat(worker, " failed: ", reason);
  // The same failure at the same step is deterministic: another attempt would repeat it.
  if (again) {
    return End(trial.data.key, v1::FAILED, kScheduler,
               absl::StrCat(told, " (for the second time in a row, again at step ", step, ")"));
  }
  const std::string counted = absl::StrCat(told, " (failure ", past.failures, " of ",
                                           options_.max_failed_attempts, " allowed)");
  if (past.failures >= options_.max_failed_attempts) {
    return End(trial.data.key, v1::FAILED, kScheduler, counted);
  }
  const absl::Duration wait = BackOff(past.failures);
  past.not_before = now + wait;
  return Requeue(trial, WorkerActor(worker),
                 absl::StrCat(counted, "; tried again in ", absl::FormatDuration(wait)));
}

TrialChange Scheduler::SplitPack(Trial& trial, const Lease& lease, absl::string_view reason) {
  const std::string told = reason.empty() ? "" : absl::StrCat(" (", reason, ")");
  if (lease.size <= 1) {
    return End(
        trial.data.key, v1::FAILED, WorkerActor(lease.worker),
        absl::StrCat("the memory of ", lease.worker, " is too small even for this trial alone",
                     told, "; it needs a larger device, or a smaller model or batch"));
  }
  // Half of the lease's size, not of its live trials: memory ran out with those that have ended
  // since.
  const int32_t half = lease.size / 2;
  trial.data.past.pack_limit = half;
  const auto worker = workers_.find(lease.worker);
  if (worker != workers_.end()) {
    const std::string& shape = TraitsOf(trial.data).shape;
    const auto known = worker->second.capacities.find(shape);
    // The worker may have measured a smaller limit.
    const bool smaller = known != worker->second.capacities.end() && known->second < half;
    if (!smaller) SetCapacity(lease.worker, shape, half);
  }
  return Requeue(trial, WorkerActor(lease.worker),
                 absl::StrCat("the memory of ", lease.worker, " is too small for the pack of ",
                              lease.size, told, "; continues in packs of at most ", half));
}

absl::StatusOr<Decisions> Scheduler::Finish(TrialKey key, Token token, v1::Outcome::Kind kind,
                                            int64_t step, absl::string_view reason,
                                            absl::Time now) {
  const auto found = trials_.find(key);
  if (token == 0 || found == trials_.end() || found->second.lease != token) {
    return absl::FailedPreconditionError(
        absl::StrCat("lease ", token, " no longer holds the trial"));
  }
  Trial& trial = found->second;
  const Lease& lease = leases_.at(token);
  const std::string& worker = lease.worker;
  Decisions decisions;
  switch (kind) {
    case v1::Outcome::COMPLETED:
      if (const auto registered = workers_.find(worker); registered != workers_.end()) {
        registered->second.failed = 0;
        registered->second.proven = true;
        registered->second.unfit.erase("");
        registered->second.unfit.erase(TraitsOf(trial.data).shape);
      }
      decisions.trials.push_back(
          End(key, v1::SUCCEEDED, WorkerActor(worker),
              absl::StrCat("completed by ", worker, " in attempt ", trial.data.past.attempt)));
      break;
    case v1::Outcome::FAILED_TEMPORARILY:
      decisions.trials.push_back(FailTemporarily(trial, worker, step, reason, now));
      break;
    case v1::Outcome::OUT_OF_MEMORY:
      decisions.trials.push_back(SplitPack(trial, lease, reason));
      break;
    default:
      decisions.trials.push_back(
          End(key, v1::FAILED, WorkerActor(worker), absl::StrCat(worker, " failed: ", reason)));
  }
  EndLeaseIfDone(token, decisions);
  return decisions;
}

void Scheduler::ChangeOwner(absl::string_view experiment, absl::string_view owner) {
  // All trials of a pack have one owner in the queue, so they leave it together.
  std::vector<const Trial*> runnable;
  for (const auto& [key, trial] : trials_) {
    const PackTraits& traits = TraitsOf(trial.data);
    if (traits.experiment != experiment) continue;
    if (trial.lease != 0) {
      queue_.AddRunning(owner, 1);
      queue_.AddRunning(traits.owner, -1);
    } else if (!trial.delayed) {
      queue_.Remove(IdOf(trial.data), key);
      runnable.push_back(&trial);
    }
  }
  for (auto& [number, pack] : packs_) {
    if (pack.traits.experiment == experiment) pack.traits.owner = std::string(owner);
  }
  for (const Trial* trial : runnable) InsertRunnable(trial->data);
}

Decisions Scheduler::Cancel(TrialKey trial, absl::string_view actor, absl::string_view reason) {
  Decisions decisions;
  if (trials_.contains(trial)) {
    decisions.trials.push_back(End(trial, v1::CANCELLED, std::string(actor), std::string(reason)));
  }
  return decisions;
}

Decisions Scheduler::Retry(const ScheduledTrial& trial, const PackTraits& traits,
                           v1::TrialState from, absl::string_view actor, absl::string_view reason) {
  Decisions decisions;
  if (trials_.contains(trial.key)) return decisions;
  ScheduledTrial anew = trial;
  // A fresh budget of failures, losses and preemptions. Attempts keep counting: the histories of
  // earlier ones stay.
  anew.past = {.attempt = trial.past.attempt};
  Trial& queued = Remember(anew, traits);
  Enqueue(queued);
  TrialChange change = ChangeOf(queued, v1::QUEUED, std::string(actor), std::string(reason));
  change.from = from;
  decisions.trials.push_back(std::move(change));
  return decisions;
}

Decisions Scheduler::Fail(TrialKey trial, absl::string_view reason) {
  Decisions decisions;
  const auto found = trials_.find(trial);
  if (found == trials_.end()) return decisions;
  const Token lease = found->second.lease;
  decisions.trials.push_back(End(trial, v1::FAILED, kScheduler, std::string(reason)));
  if (lease != 0) EndLeaseIfDone(lease, decisions);
  return decisions;
}

void Scheduler::Postpone(TrialKey key, absl::Time until, absl::string_view reason) {
  const auto found = trials_.find(key);
  if (found == trials_.end() || found->second.lease != 0) return;
  Trial& trial = found->second;
  Dequeue(trial);
  trial.data.past.not_before = until;
  Enqueue(trial);
  postponed_[key] = std::string(reason);
}

void Scheduler::SetCheckpoint(TrialKey key, int64_t step) {
  const auto found = trials_.find(key);
  if (found == trials_.end()) return;
  Trial& trial = found->second;
  // Only queue_ refers to the checkpoint's step and the losses, which are parts of IdOf.
  const bool runnable = trial.lease == 0 && !trial.delayed;
  if (runnable) queue_.Remove(IdOf(trial.data), key);
  if (step > trial.data.checkpoint_step) trial.data.past.losses = 0;
  trial.data.checkpoint_step = step;
  if (runnable) InsertRunnable(trial.data);
}

void Scheduler::Hear(absl::Time heard) {
  const absl::Duration pause = heard - heard_ - options_.lease_duration / 10;
  heard_ = heard;
  // Without a lease or a live worker, no call was due.
  const bool none_due = leases_.empty() && next_loss_ == absl::InfiniteFuture();
  if (pause <= absl::ZeroDuration() || none_due) return;
  expiries_.clear();
  for (auto& [token, lease] : leases_) {
    lease.expires += pause;
    expiries_.emplace(lease.expires, token);
  }
  for (auto& [name, worker] : workers_) {
    if (!worker.lost) worker.last_seen += pause;
  }
}

void Scheduler::CountWorkers(absl::Time now, std::vector<std::string>& lost) {
  fleet_size_ = 0;
  next_loss_ = absl::InfiniteFuture();
  for (auto& [name, worker] : workers_) {
    if (now - worker.last_seen <= options_.lease_duration) ++fleet_size_;
    const absl::Time loss = worker.last_seen + options_.lease_duration;
    if (std::min(now, heard_) < loss) {
      next_loss_ = std::min(next_loss_, loss);
    } else if (!std::exchange(worker.lost, true)) {
      lost.push_back(name);
    }
  }
}

Decisions Scheduler::Tick(absl::Time now) {
  last_tick_ = now;
  Decisions decisions;
  constexpr size_t kMostAtOnce = 1000;
  while (!expiries_.empty() && expiries_.begin()->first <= std::min(now, heard_) &&
         decisions.trials.size() < kMostAtOnce) {
    const Token token = expiries_.begin()->second;
    const Lease& lease = leases_.at(token);
    GiveUp(token, kScheduler,
           absl::StrCat("lease ", token, " of ", lease.worker,
                        lease.preempted.empty() ? "" : ", which was being preempted,",
                        " expired after ", absl::FormatDuration(options_.lease_duration),
                        " without a heartbeat"),
           /*lost=*/now >= losses_count_from_, decisions);
  }
  // Not at every tick: a tick follows every group of commands, and there are thousands of workers.
  if (now >= next_count_) {
    next_count_ = now + absl::Seconds(1);
    CountWorkers(now, decisions.lost_workers);
    absl::erase_if(workers_, [&](const auto& worker) {
      return now - worker.second.last_seen > options_.worker_memory;
    });
  }
  // Preempt last: it compares the packs that wait now with the workers that are free now.
  MatureDelayed(now);
  Preempt(now);
  return decisions;
}

absl::Time Scheduler::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  if (!expiries_.empty()) {
    deadline = std::min(expiries_.begin()->first, heard_ + options_.lease_duration / 20);
  }
  if (!delayed_.empty()) deadline = std::min(deadline, delayed_.begin()->first);
  // Uses the same condition as Tick. A deadline that Tick does not act on would wake the loop again
  // and again.
  if (const std::optional<Token> token = NextToPreempt(last_tick_); token.has_value()) {
    deadline = std::min(deadline, leases_.at(*token).rank->second + options_.min_run);
  }
  return deadline;
}

absl::Time Scheduler::NextLoss() const {
  if (next_loss_ == absl::InfiniteFuture()) return next_loss_;
  return std::min(std::max(next_loss_, next_count_), heard_ + options_.lease_duration / 20);
}

bool Scheduler::HasRunnable(absl::Time now) {
  MatureDelayed(now);
  return !queue_.empty() && !holds_.contains("");
}

bool Scheduler::HasRunnable(absl::string_view worker, absl::Time now) {
  MatureDelayed(now);
  const auto registered = workers_.find(worker);
  return registered == workers_.end() || NextFor(worker, registered->second, now) != nullptr;
}

}  // namespace lengthwise::server
