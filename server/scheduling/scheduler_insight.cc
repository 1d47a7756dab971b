// Read-only views of the scheduler: reasons, counts and invariants.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "server/scheduling/scheduler.h"

namespace lengthwise::server {

bool Scheduler::IsAlive(absl::string_view worker, absl::Time now) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && now - found->second.last_seen <= options_.lease_duration;
}

int64_t Scheduler::LiveWorkers(absl::Time now) const {
  return std::count_if(workers_.begin(), workers_.end(), [&](const auto& worker) {
    return now - worker.second.last_seen <= options_.lease_duration;
  });
}

int64_t Scheduler::BusyWorkers(absl::Time now) const {
  return std::count_if(busy_.begin(), busy_.end(),
                       [&](const auto& worker) { return IsAlive(worker.first, now); });
}

bool Scheduler::IsIdle(absl::string_view worker, absl::Time now,
                       absl::string_view experiment) const {
  if (!IsAlive(worker, now) || busy_.contains(worker) || holds_.contains(worker)) return false;
  const Worker& idle = workers_.at(worker);
  return UnfitFor(idle, "", now) == nullptr &&
         (idle.experiment.empty() || idle.experiment == experiment);
}

std::string Scheduler::HoldOf(absl::string_view worker) const {
  const auto found = holds_.find(worker);
  return found == holds_.end() ? "" : found->second;
}

absl::btree_map<std::string, WantedPacks> Scheduler::Wanted(int32_t max_pack_size,
                                                            absl::string_view experiment) const {
  absl::btree_map<std::string, WantedPacks> wanted;
  if (holds_.contains("")) return wanted;
  queue_.ForEachPack([&](const PackId& id, int64_t trials) {
    const PackTraits& traits = packs_.at(id.pack).traits;
    if (!experiment.empty() && traits.experiment != experiment) return;
    const auto [found, is_new] = wanted.try_emplace(traits.shape);
    WantedPacks& shape = found->second;
    shape.priority = is_new ? traits.priority : std::max(shape.priority, traits.priority);
    // The smallest, so that the answer does not depend on the hash map's order.
    shape.pack = is_new ? id.pack : std::min(shape.pack, id.pack);
    int64_t size = id.limit > 0 ? std::min(id.limit, max_pack_size) : max_pack_size;
    if (traits.most > 0) size = std::min<int64_t>(size, traits.most);
    shape.trials += trials;
    shape.packs += (trials + size - 1) / size;
  });
  return wanted;
}

absl::flat_hash_map<std::string, std::vector<TrialKey>> Scheduler::TrialsByWorker() const {
  absl::flat_hash_map<std::string, std::vector<TrialKey>> trials;
  for (const auto& [token, lease] : leases_) {
    if (lease.live.empty()) continue;
    std::vector<TrialKey>& held = trials[lease.worker];
    held.insert(held.end(), lease.live.begin(), lease.live.end());
  }
  return trials;
}

Token Scheduler::LeaseOf(TrialKey trial) const {
  const auto found = trials_.find(trial);
  return found == trials_.end() ? 0 : found->second.lease;
}

std::string Scheduler::ShapeOf(TrialKey trial) const {
  const auto found = trials_.find(trial);
  return found == trials_.end() ? "" : TraitsOf(found->second.data).shape;
}

std::string Scheduler::WhyWaiting(TrialKey key, absl::Time now) const {
  const auto found = trials_.find(key);
  if (found == trials_.end() || found->second.lease != 0) return "";
  const ScheduledTrial& trial = found->second.data;
  if (trial.past.not_before > now) {
    const absl::Duration wait = absl::Ceil(trial.past.not_before - now, absl::Seconds(1));
    const std::string waits = absl::StrCat("waits ", absl::FormatDuration(wait), " more");
    const auto postponed = postponed_.find(key);
    if (postponed != postponed_.end()) return absl::StrCat(waits, ": ", postponed->second);
    return absl::StrCat(waits, " after failure ", trial.past.failures, " of ",
                        options_.max_failed_attempts, " allowed");
  }
  if (const std::string pause = HoldOf(""); !pause.empty()) {
    return absl::StrCat("waits: the queue is ", pause);
  }
  const PackTraits& traits = TraitsOf(trial);
  int64_t workers = 0;
  int64_t dedicated = 0;
  std::string held;
  std::string unfit;
  for (const auto& [name, worker] : workers_) {
    if (now - worker.last_seen > options_.lease_duration) continue;
    if (const std::string hold = HoldOf(name); !hold.empty()) {
      held = absl::StrCat(name, " is ", hold);
    } else if (!worker.experiment.empty() && worker.experiment != traits.experiment) {
      ++dedicated;
    } else if (const Unfit* const found = UnfitFor(worker, traits.shape, now); found == nullptr) {
      ++workers;
    } else {
      unfit = absl::StrCat(name, " cannot run it now: ", found->why);
    }
  }
  if (workers == 0) {
    if (!unfit.empty()) return absl::StrCat("waits for a worker that can run it; ", unfit);
    if (!held.empty()) return absl::StrCat("waits for a worker: ", held);
    if (dedicated == 0) return "waits for a worker: none is connected";
    return absl::StrCat("waits for a worker: ", dedicated == 1 ? "the one that is" : "all that are",
                        " connected ", dedicated == 1 ? "trains" : "train",
                        " other experiments only");
  }
  std::string why = PlaceInQueue(trial);
  absl::StrAppend(&why, "; ", workers, workers == 1 ? " worker is" : " workers are", " connected, ",
                  running_, running_ == 1 ? " trial runs" : " trials run");
  if (preempted_ > 0) {
    absl::StrAppend(&why, ", ", preempted_, preempted_ == 1 ? " lease is" : " leases are",
                    " being preempted");
  }
  if (RunsAlone(trial.past)) {
    absl::StrAppend(&why, "; runs alone, because ", trial.past.losses,
                    " workers in a row were lost with it");
  } else if (trial.past.pack_limit > 0) {
    absl::StrAppend(&why, "; limited to packs of at most ", trial.past.pack_limit,
                    ", because more did not fit a worker's memory");
  }
  return why;
}

std::string Scheduler::PlaceInQueue(const ScheduledTrial& trial) const {
  constexpr int64_t kMostCounted = 100;
  const PackId id = IdOf(trial);
  if (!queue_.Contains(id)) return "is next";  // its back-off has just ended
  const PackTraits& traits = TraitsOf(trial);
  const auto packs = [](int64_t count) {
    return absl::StrCat(count == kMostCounted ? "more than " : "",
                        count == kMostCounted ? count - 1 : count, count == 1 ? " pack" : " packs");
  };
  if (const int64_t above = queue_.PacksAbove(traits.priority); above > 0) {
    return absl::StrCat("waits for ", above, above == 1 ? " pack" : " packs",
                        " of a higher priority (up to ", queue_.next_priority(), "; its own is ",
                        traits.priority, ")");
  }
  const int64_t before = queue_.PacksBefore(id, kMostCounted);
  if (queue_.next_owner() != traits.owner) {
    return absl::StrCat(
        "waits for its owner's fair share: ", traits.owner, " runs ", queue_.Running(traits.owner),
        " and ", queue_.next_owner(), ", who goes first, ", queue_.Running(queue_.next_owner()),
        " models",
        before == 0 ? "" : absl::StrCat("; it is behind ", packs(before), " of its owner"));
  }
  if (before == 0) return "is next";
  return absl::StrCat("waits for ", packs(before), " that ", traits.owner, " submitted before");
}

std::string Scheduler::FaultOf(absl::string_view worker, absl::Time now) const {
  const auto registered = workers_.find(worker);
  if (registered == workers_.end()) return "";
  const Unfit* const unfit = UnfitFor(registered->second, "", now);
  return unfit == nullptr ? "" : unfit->why;
}

std::string Scheduler::WhyNothing(absl::string_view worker, absl::Time now) const {
  if (const std::string pause = HoldOf(""); !pause.empty()) {
    return absl::StrCat("the queue is ", pause);
  }
  if (const std::string hold = HoldOf(worker); !hold.empty()) {
    return absl::StrCat("this worker is ", hold);
  }
  const auto registered = workers_.find(worker);
  if (const std::string fault = FaultOf(worker, now);
      !fault.empty() && !queue_.empty() && NextFor(worker, registered->second, now) == nullptr) {
    return absl::StrCat("no trial can be leased that this machine can run now: ", fault);
  }
  if (registered != workers_.end() && !registered->second.experiment.empty() &&
      NextFor(worker, registered->second, now) == nullptr) {
    return absl::StrCat("no trial of ", registered->second.experiment, " can be leased now");
  }
  if (!queue_.empty()) return "trials are queued; ask again";
  if (!delayed_.empty()) {
    return absl::StrCat(delayed_.size(), delayed_.size() == 1 ? " trial waits" : " trials wait",
                        " after a temporary failure, no other is queued");
  }
  return "no trials are queued";
}

absl::Status Scheduler::CheckInvariants() const {
  RETURN_IF_ERROR(queue_.CheckInvariants());
  int64_t live = 0;
  int64_t preempted = 0;
  size_t ranked = 0;
  absl::flat_hash_map<std::string, int32_t> busy;
  absl::flat_hash_map<std::string, int64_t> running;  // by owner
  for (const auto& [token, lease] : leases_) {
    if (token >= next_token_) return absl::InternalError("a token from the future");
    if (lease.live.empty() && lease.cancelled.empty()) {
      return absl::InternalError(absl::StrCat("lease ", token, " holds nothing"));
    }
    if (!expiries_.contains({lease.expires, token})) {
      return absl::InternalError(absl::StrCat("lease ", token, " never expires"));
    }
    if (!lease.live.empty()) ++busy[lease.worker];
    if (!lease.preempted.empty()) ++preempted;
    if (lease.rank.has_value()) {
      ++ranked;
      if (lease.live.empty() || !lease.preempted.empty() ||
          !ranks_.contains({lease.rank->first, lease.rank->second, token})) {
        return absl::InternalError(absl::StrCat("lease ", token, " cannot be preempted"));
      }
    }
    for (const TrialKey key : lease.live) {
      ++live;
      if (LeaseOf(key) != token) {
        return absl::InternalError(absl::StrCat("trial ", key, " is in two leases"));
      }
      ++running[TraitsOf(trials_.at(key).data).owner];
    }
  }
  if (live != running_) return absl::InternalError("running trials are miscounted");
  if (expiries_.size() != leases_.size()) return absl::InternalError("an expiry without lease");
  if (busy != busy_) return absl::InternalError("busy workers are miscounted");
  if (preempted != preempted_) return absl::InternalError("preempted leases are miscounted");
  if (ranked != ranks_.size()) return absl::InternalError("a rank without lease");
  for (const auto& [owner, count] : running) {
    if (queue_.Running(owner) != count) {
      return absl::InternalError(absl::StrCat("the share of ", owner, " is miscounted"));
    }
  }
  absl::flat_hash_map<int64_t, int64_t> known;  // trials by pack
  absl::flat_hash_map<PackId, int64_t> runnable;
  int64_t waiting = 0;
  for (const auto& [key, trial] : trials_) {
    ++known[trial.data.pack];
    if (trial.lease != 0) continue;
    ++waiting;
    if (trial.delayed) {
      if (!delayed_.contains({trial.data.past.not_before, key})) {
        return absl::InternalError(absl::StrCat("trial ", key, " waits for ever"));
      }
      --waiting;
    } else if (!queue_.Contains(IdOf(trial.data))) {
      return absl::InternalError(absl::StrCat("trial ", key, " is in no pack"));
    } else {
      ++runnable[IdOf(trial.data)];
    }
  }
  if (static_cast<int64_t>(runnable.size()) != queue_.packs() || waiting != queue_.trials()) {
    return absl::InternalError("the queue has other trials than wait");
  }
  if (known.size() != packs_.size()) return absl::InternalError("a pack without trials");
  for (const auto& [number, pack] : packs_) {
    if (known[number] != pack.trials) return absl::InternalError("a pack's trials are miscounted");
  }
  for (const auto& [key, reason] : postponed_) {
    const auto trial = trials_.find(key);
    if (trial == trials_.end() || !trial->second.delayed) {
      return absl::InternalError(absl::StrCat("trial ", key, " is postponed and does not wait"));
    }
  }
  absl::flat_hash_map<std::string, int32_t> directed;
  for (const auto& [token, lease] : leases_) {
    if (lease.has_directive()) ++directed[lease.worker];
  }
  if (directed != directed_) return absl::InternalError("leases with a directive are miscounted");
  for (const Token token : to_tell_) {
    const auto lease = leases_.find(token);
    if (lease == leases_.end() || !lease->second.has_directive()) {
      return absl::InternalError(absl::StrCat("lease ", token, " has no directive to tell"));
    }
  }
  if (waiting + static_cast<int64_t>(delayed_.size()) != queued()) {
    return absl::InternalError("a waiting trial is nowhere");
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
