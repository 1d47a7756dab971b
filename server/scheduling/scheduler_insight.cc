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
                  running(), running() == 1 ? " trial runs" : " trials run");
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
  // What the leases and the trials say.
  decltype(expiries_) expiries;
  decltype(ranks_) ranks;
  decltype(busy_) busy;
  decltype(directed_) directed;
  int64_t live = 0;
  int64_t preempted = 0;
  absl::flat_hash_map<std::string, int64_t> running;  // by owner
  for (const auto& [token, lease] : leases_) {
    if (token >= next_token_) return absl::InternalError("a token from the future");
    if (lease.live.empty() && lease.cancelled.empty()) {
      return absl::InternalError(absl::StrCat("lease ", token, " holds nothing"));
    }
    expiries.emplace(lease.expires, token);
    if (!lease.live.empty()) ++busy[lease.worker];
    if (lease.has_directive()) ++directed[lease.worker];
    if (!lease.preempted.empty()) ++preempted;
    if (lease.rank.has_value()) {
      ranks.emplace(lease.rank->first, lease.rank->second, token);
      if (lease.live.empty() || !lease.preempted.empty()) {
        return absl::InternalError(absl::StrCat("lease ", token, " cannot be preempted"));
      }
    }
    for (const TrialKey key : lease.live) {
      ++live;
      const auto trial = trials_.find(key);
      if (trial == trials_.end() || trial->second.lease != token) {
        return absl::InternalError(absl::StrCat("trial ", key, " is in two leases"));
      }
      ++running[TraitsOf(trial->second.data).owner];
    }
  }
  for (const auto& [owner, count] : running) {
    if (queue_.Running(owner) != count) {
      return absl::InternalError(absl::StrCat("the share of ", owner, " is miscounted"));
    }
  }
  decltype(delayed_) delayed;
  absl::flat_hash_map<int64_t, int64_t> known;  // trials by pack
  int64_t runnable = 0;
  for (const auto& [key, trial] : trials_) {
    ++known[trial.data.pack];
    if (trial.delayed) delayed.emplace(trial.data.past.not_before, key);
    if (trial.lease != 0 || trial.delayed) continue;
    ++runnable;
    const PackId id = IdOf(trial.data);
    if (!queue_.Contains(id) || !queue_.trials_of(id).contains(key)) {
      return absl::InternalError(absl::StrCat("trial ", key, " is in no pack"));
    }
  }
  const bool packs_agree = std::all_of(packs_.begin(), packs_.end(), [&](const auto& pack) {
    return known[pack.first] == pack.second.trials;
  });
  const bool postponed_wait =
      std::all_of(postponed_.begin(), postponed_.end(), [&](const auto& postponed) {
        return trials_.contains(postponed.first) && trials_.at(postponed.first).delayed;
      });
  const bool told_have_directives =
      std::all_of(to_tell_.begin(), to_tell_.end(), [&](const Token token) {
        return leases_.contains(token) && leases_.at(token).has_directive();
      });
  const std::pair<bool, const char*> checks[] = {
      {live + queued() == static_cast<int64_t>(trials_.size()),
       "a trial is in no place, or in two"},
      {expiries == expiries_, "the expiries are not those of the leases"},
      {busy == busy_, "busy workers are miscounted"},
      {preempted == preempted_, "preempted leases are miscounted"},
      {ranks == ranks_, "the ranks are not those of the leases"},
      {directed == directed_, "leases with a directive are miscounted"},
      {told_have_directives, "a lease has no directive to tell"},
      {delayed == delayed_, "the delayed trials are not those that wait"},
      {postponed_wait, "a postponed trial does not wait"},
      {runnable == queue_.trials(), "the queue has other trials than wait"},
      {packs_agree && known.size() == packs_.size(), "a pack's trials are miscounted"},
  };
  for (const auto& [holds, problem] : checks) {
    if (!holds) return absl::InternalError(problem);
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
