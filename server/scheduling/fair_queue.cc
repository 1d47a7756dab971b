#include "server/scheduling/fair_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lengthwise::server {

FairQueue::OwnerNumber FairQueue::Find(absl::string_view name) {
  const auto [found, is_new] = numbers_.try_emplace(std::string(name), last_owner_ + 1);
  if (is_new) {
    Owner& owner = owners_[++last_owner_];
    owner.name = std::string(name);
    // A new or returning owner starts behind all that wait. Otherwise a stream of single
    // submissions would always go before a large grid.
    owner.served = last_served_;
  }
  return found->second;
}

void FairQueue::ForgetIfIdle(OwnerNumber number) {
  const auto found = owners_.find(number);
  if (found->second.running > 0 || !found->second.lines.empty()) return;
  numbers_.erase(found->second.name);
  owners_.erase(found);
}

void FairQueue::Stand(const Pack& pack, TrialKey first, const PackId& id) {
  experiments_[pack.experiment].emplace(first, id);
}

void FairQueue::Leave(const Pack& pack, TrialKey first) {
  const auto line = experiments_.find(pack.experiment);
  line->second.erase(first);
  if (line->second.empty()) experiments_.erase(line);
}

void FairQueue::Insert(const PackId& id, int32_t priority, absl::string_view owner_name,
                       absl::string_view experiment, TrialKey trial) {
  ++trials_;
  const auto [found, is_new] = packs_.try_emplace(id);
  Pack& pack = found->second;
  if (is_new) {
    pack.priority = priority;
    pack.owner = Find(owner_name);
    pack.experiment = std::string(experiment);
    ++packs_at_[-priority];
  }
  Owner& owner = owners_.at(pack.owner);
  if (!is_new) {
    const TrialKey first = *pack.trials.begin();
    pack.trials.insert(trial);
    // A pack stands in its lines under its first trial, so it moves when that changes.
    if (first < trial) return;
    Line& line = owner.lines.at(-pack.priority);
    line.erase(first);
    line.emplace(trial, id);
    Leave(pack, first);
    Stand(pack, trial, id);
    return;
  }
  pack.trials.insert(trial);
  Stand(pack, trial, id);
  Line& line = owner.lines[-priority];
  if (line.empty()) turns_.insert(TurnOf(-priority, pack.owner, owner));
  line.emplace(trial, id);
}

void FairQueue::Remove(const PackId& id, TrialKey trial) {
  const auto found = packs_.find(id);
  Pack& pack = found->second;
  const TrialKey first = *pack.trials.begin();
  --trials_;
  pack.trials.erase(trial);
  if (first != trial) return;
  const OwnerNumber number = pack.owner;
  Owner& owner = owners_.at(number);
  const auto line = owner.lines.find(-pack.priority);
  line->second.erase(first);
  Leave(pack, first);
  if (!pack.trials.empty()) {
    line->second.emplace(*pack.trials.begin(), id);
    Stand(pack, *pack.trials.begin(), id);
    return;
  }
  const auto level = packs_at_.find(-pack.priority);
  if (--level->second == 0) packs_at_.erase(level);
  if (line->second.empty()) {
    turns_.erase(TurnOf(-pack.priority, number, owner));
    owner.lines.erase(line);
  }
  packs_.erase(found);
  ForgetIfIdle(number);
}

template <typename Change>
void FairQueue::ChangeShare(absl::string_view name, const Change& change) {
  const OwnerNumber number = Find(name);
  Owner& owner = owners_.at(number);
  // A turn is a key in an ordered set, so it is taken out while the share in it changes.
  for (const auto& [priority, line] : owner.lines) turns_.erase(TurnOf(priority, number, owner));
  change(owner);
  for (const auto& [priority, line] : owner.lines) turns_.insert(TurnOf(priority, number, owner));
  ForgetIfIdle(number);
}

void FairQueue::AddRunning(absl::string_view owner, int64_t by) {
  ChangeShare(owner, [by](Owner& changed) { changed.running += by; });
}

void FairQueue::Serve(absl::string_view owner, int64_t number) {
  last_served_ = std::max(last_served_, number);
  ChangeShare(owner, [number](Owner& served) { served.served = number; });
}

const PackId& FairQueue::next() const {
  const Turn& turn = *turns_.begin();
  return owners_.at(turn.owner).lines.at(turn.priority).begin()->second;
}

int64_t FairQueue::PacksAbove(int32_t priority) const {
  int64_t packs = 0;
  for (const auto& [negated, count] : packs_at_) {
    if (-negated <= priority) break;
    packs += count;
  }
  return packs;
}

int64_t FairQueue::PacksBefore(const PackId& id, int64_t at_most) const {
  const Pack& pack = packs_.at(id);
  int64_t before = 0;
  for (const auto& [first, other] : owners_.at(pack.owner).lines.at(-pack.priority)) {
    if (other == id || before == at_most) break;
    ++before;
  }
  return before;
}

int64_t FairQueue::Running(absl::string_view owner) const {
  const auto number = numbers_.find(owner);
  return number == numbers_.end() ? 0 : owners_.at(number->second).running;
}

absl::Status FairQueue::CheckInvariants() const {
  absl::btree_map<int32_t, int64_t> packs_at;
  for (const auto& [id, pack] : packs_) {
    if (pack.trials.empty()) return absl::InternalError("an empty pack");
    ++packs_at[-pack.priority];
    const auto owner = owners_.find(pack.owner);
    if (owner == owners_.end()) return absl::InternalError("a pack without owner");
    const auto line = owner->second.lines.find(-pack.priority);
    const TrialKey first = *pack.trials.begin();
    if (line == owner->second.lines.end() || !line->second.contains(first) ||
        line->second.at(first) != id) {
      return absl::InternalError(absl::StrCat("the pack of trial ", first, " stands in no line"));
    }
    const auto own = experiments_.find(pack.experiment);
    if (own == experiments_.end() || !own->second.contains(first) || own->second.at(first) != id) {
      return absl::InternalError(
          absl::StrCat("the pack of trial ", first, " is not in its experiment's line"));
    }
  }
  if (packs_at != packs_at_) return absl::InternalError("packs are miscounted by priority");
  size_t standing = 0;
  size_t lines = 0;
  for (const auto& [number, owner] : owners_) {
    if (owner.running < 0) return absl::InternalError("fewer than no models run");
    if (owner.running == 0 && owner.lines.empty()) return absl::InternalError("an idle owner");
    const auto known = numbers_.find(owner.name);
    if (known == numbers_.end() || known->second != number) {
      return absl::InternalError("an owner without number");
    }
    for (const auto& [priority, line] : owner.lines) {
      if (line.empty()) return absl::InternalError("an empty line");
      if (!turns_.contains(TurnOf(priority, number, owner))) {
        return absl::InternalError(absl::StrCat("a line of ", owner.name, " has no turn"));
      }
      standing += line.size();
      ++lines;
    }
  }
  size_t of_experiments = 0;
  for (const auto& [experiment, line] : experiments_) of_experiments += line.size();
  if (of_experiments != packs_.size()) {
    return absl::InternalError("an experiment's line has packs that are gone");
  }
  if (standing != packs_.size()) return absl::InternalError("a pack stands in two lines");
  if (lines != turns_.size()) return absl::InternalError("a turn without line");
  return absl::OkStatus();
}

}  // namespace lengthwise::server
