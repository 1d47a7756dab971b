// What the scheduler says of itself: reasons, counts and invariants.
#include <algorithm>

#include "absl/strings/str_cat.h"
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

std::vector<TrialKey> Scheduler::TrialsOf(absl::string_view worker) const {
  std::vector<TrialKey> trials;
  for (const auto& [token, lease] : leases_) {
    if (lease.worker == worker) trials.insert(trials.end(), lease.live.begin(), lease.live.end());
  }
  return trials;
}

Token Scheduler::LeaseOf(TrialKey trial) const {
  const auto found = trials_.find(trial);
  return found == trials_.end() ? 0 : found->second.lease;
}

std::string Scheduler::WhyWaiting(TrialKey key, absl::Time now) const {
  const auto found = trials_.find(key);
  if (found == trials_.end() || found->second.lease != 0) return "";
  const ScheduledTrial& trial = found->second.data;
  if (trial.not_before > now) {
    const absl::Duration wait = absl::Ceil(trial.not_before - now, absl::Seconds(1));
    return absl::StrCat("waits ", absl::FormatDuration(wait), " more after failure ",
                        trial.failures, " of ", options_.max_failed_attempts, " allowed");
  }
  const int64_t workers = LiveWorkers(now);
  if (workers == 0) return "waits for a worker: none is connected";
  const std::string busy =
      absl::StrCat("; ", workers, workers == 1 ? " worker is" : " workers are", " connected, ",
                   running_, running_ == 1 ? " trial runs" : " trials run");
  const auto pack = packs_.find({trial.pack, trial.checkpoint_step});
  if (pack == packs_.end() || ready_.empty()) return absl::StrCat("is next", busy);
  const auto& [turn, first] = *ready_.begin();
  if (first == pack->first) return absl::StrCat("is next", busy);
  if (-turn.first > trial.priority) {
    return absl::StrCat("waits for trials of priority ", -turn.first,
                        ", which go before its priority ", trial.priority, busy);
  }
  return absl::StrCat("waits for trials submitted before it", busy);
}

std::string Scheduler::WhyNothing() const {
  if (!ready_.empty()) return "trials are queued; ask again";
  if (!delayed_.empty()) {
    return absl::StrCat(delayed_.size(), delayed_.size() == 1 ? " trial waits" : " trials wait",
                        " after a temporary failure, no other is queued");
  }
  return "no trials are queued";
}

absl::Status Scheduler::CheckInvariants() const {
  int64_t live = 0;
  for (const auto& [token, lease] : leases_) {
    if (token >= next_token_) return absl::InternalError("a token from the future");
    if (lease.live.empty() && lease.cancelled.empty()) {
      return absl::InternalError(absl::StrCat("lease ", token, " holds nothing"));
    }
    if (!expiries_.contains({lease.expires, token})) {
      return absl::InternalError(absl::StrCat("lease ", token, " never expires"));
    }
    for (const TrialKey key : lease.live) {
      ++live;
      if (LeaseOf(key) != token) {
        return absl::InternalError(absl::StrCat("trial ", key, " is in two leases"));
      }
    }
  }
  if (live != running_) return absl::InternalError("running trials are miscounted");
  if (expiries_.size() != leases_.size()) return absl::InternalError("an expiry without lease");
  int64_t runnable = 0;
  for (const auto& [id, pack] : packs_) {
    if (pack.empty()) return absl::InternalError("an empty pack");
    const ScheduledTrial& first = trials_.at(*pack.begin()).data;
    const auto turn = ready_.find(TurnOf(first.priority, first.key));
    if (turn == ready_.end() || turn->second != id) {
      return absl::InternalError(absl::StrCat("the pack of trial ", first.key, " has no turn"));
    }
    for (const TrialKey key : pack) {
      const Trial& trial = trials_.at(key);
      const PackId right(trial.data.pack, trial.data.checkpoint_step);
      if (trial.lease != 0 || trial.delayed || right != id) {
        return absl::InternalError(absl::StrCat("trial ", key, " is in the wrong pack"));
      }
      ++runnable;
    }
  }
  if (ready_.size() != packs_.size()) return absl::InternalError("a turn without pack");
  if (runnable + static_cast<int64_t>(delayed_.size()) != queued()) {
    return absl::InternalError("a waiting trial is nowhere");
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
