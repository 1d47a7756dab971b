// Chooses the lease to preempt: the longest-running one of the lowest priority, and only while more
// packs of a higher priority wait than workers are free or being freed.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scheduling/scheduler.h"

namespace lengthwise::server {

void Scheduler::Rank(Token token, Lease& lease, absl::Time granted) {
  if (lease.live.empty()) return;
  // A dedicated worker would not take another experiment's pack.
  const auto worker = workers_.find(lease.worker);
  if (worker != workers_.end() && !worker->second.experiment.empty()) return;
  // A trial may be preempted only a limited number of times, so that every trial ends.
  for (const TrialKey key : lease.live) {
    if (trials_.at(key).data.past.preemptions >= options_.max_preemptions) return;
  }
  const int32_t priority = packs_.at(lease.pack).traits.priority;
  lease.rank = {priority, granted};
  ranks_.emplace(priority, granted, token);
}

void Scheduler::Unrank(Token token, Lease& lease) {
  if (!lease.rank.has_value()) return;
  ranks_.erase({lease.rank->first, lease.rank->second, token});
  lease.rank.reset();
}

int64_t Scheduler::FreeWorkers(absl::Time now) const {
  return std::count_if(workers_.begin(), workers_.end(), [&](const auto& worker) {
    return worker.second.experiment.empty() && UnfitFor(worker.second, "", now) == nullptr &&
           now - worker.second.last_seen <= options_.free_memory + worker.second.silence &&
           !busy_.contains(worker.first) && !holds_.contains(worker.first);
  });
}

std::optional<Token> Scheduler::NextToPreempt(absl::Time now) const {
  if (queue_.empty() || ranks_.empty() || holds_.contains("")) return std::nullopt;
  const auto& [priority, granted, token] = *ranks_.begin();
  if (queue_.next_priority() <= priority) return std::nullopt;
  if (queue_.PacksAbove(priority) <= preempted_ + FreeWorkers(now)) return std::nullopt;
  return token;
}

void Scheduler::Preempt(absl::Time now) {
  while (const std::optional<Token> token = NextToPreempt(now)) {
    Lease& lease = leases_.at(*token);
    const auto [priority, granted] = *lease.rank;
    // Waits for this lease rather than preempt one of a higher priority that has run longer.
    if (granted + options_.min_run > now) return;
    const int64_t waiting = queue_.PacksAbove(priority);
    Recall(*token, lease,
           absl::StrCat("preempted for priority ", queue_.next_priority(), ", which goes before ",
                        priority, ": ", waiting,
                        waiting == 1 ? " such pack waits" : " such packs wait",
                        " and no worker is free"));
  }
}

void Scheduler::Recall(Token token, Lease& lease, std::string why) {
  NoteDirective(token, lease);
  lease.preempted = std::move(why);
  Unrank(token, lease);
  ++preempted_;
}

}  // namespace lengthwise::server
