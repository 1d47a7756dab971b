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

void FairQueue::Stand(const PackId& id, const Pack& pack) {
  const TrialKey first = *pack.trials.begin();
  Owner& owner = owners_.at(pack.owner);
  Line& line = owner.lines[-pack.priority];
  if (line.empty()) turns_.insert(TurnOf(-pack.priority, pack.owner, owner));
  line.emplace(first, id);
  experiments_[pack.experiment].emplace(first, id);
}

void FairQueue::Leave(const Pack& pack) {
  const TrialKey first = *pack.trials.begin();
  Owner& owner = owners_.at(pack.owner);
  const auto line = owner.lines.find(-pack.priority);
  line->second.erase(first);
  if (line->second.empty()) {
    turns_.erase(TurnOf(-pack.priority, pack.owner, owner));
    owner.lines.erase(line);
  }
  const auto of_experiment = experiments_.find(pack.experiment);
  of_experiment->second.erase(first);
  if (of_experiment->second.empty()) experiments_.erase(of_experiment);
}

void FairQueue::Insert(const PackId& id, int32_t priority, absl::string_view owner,
                       absl::string_view experiment, TrialKey trial) {
  ++trials_;
  const auto [found, is_new] = packs_.try_emplace(id);
  Pack& pack = found->second;
  if (is_new) {
    pack.priority = priority;
    pack.owner = Find(owner);
    pack.experiment = std::string(experiment);
  } else if (*pack.trials.begin() < trial) {
    pack.trials.insert(trial);
    return;
  } else {
    Leave(pack);
  }
  pack.trials.insert(trial);
  Stand(id, pack);
}

void FairQueue::Remove(const PackId& id, TrialKey trial) {
  const auto found = packs_.find(id);
  Pack& pack = found->second;
  --trials_;
  const bool is_first = *pack.trials.begin() == trial;
  if (is_first) Leave(pack);
  pack.trials.erase(trial);
  if (pack.trials.empty()) {
    const OwnerNumber number = pack.owner;
    packs_.erase(found);
    ForgetIfIdle(number);
  } else if (is_first) {
    Stand(id, pack);
  }
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

int64_t FairQueue::PacksAbove(int32_t priority) const {
  int64_t packs = 0;
  for (const Turn& turn : turns_) {
    if (-turn.priority <= priority) break;
    packs += static_cast<int64_t>(owners_.at(turn.owner).lines.at(turn.priority).size());
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
  absl::flat_hash_map<std::string, Line> experiments;
  absl::btree_map<std::pair<OwnerNumber, int32_t>, Line> lines;
  int64_t trials = 0;
  for (const auto& [id, pack] : packs_) {
    if (pack.trials.empty()) return absl::InternalError("an empty pack");
    trials += static_cast<int64_t>(pack.trials.size());
    experiments[pack.experiment].emplace(*pack.trials.begin(), id);
    lines[{pack.owner, -pack.priority}].emplace(*pack.trials.begin(), id);
  }
  if (trials != trials_) return absl::InternalError("the trials are miscounted");
  if (experiments != experiments_) return absl::InternalError("an experiment has a wrong line");
  absl::btree_set<Turn> turns;
  for (const auto& [number, owner] : owners_) {
    if (owner.running < 0) return absl::InternalError("fewer than no models run");
    if (owner.running == 0 && owner.lines.empty()) return absl::InternalError("an idle owner");
    const auto known = numbers_.find(owner.name);
    if (known == numbers_.end() || known->second != number) {
      return absl::InternalError("an owner without number");
    }
    for (const auto& [priority, line] : owner.lines) {
      turns.insert(TurnOf(priority, number, owner));
      const auto wanted = lines.find({number, priority});
      if (wanted == lines.end() || wanted->second != line) {
        return absl::InternalError(absl::StrCat("a line of ", owner.name, " has wrong packs"));
      }
    }
  }
  if (turns != turns_) return absl::InternalError("the turns are not those of the lines");
  if (lines.size() != turns.size()) return absl::InternalError("a pack stands in no line");
  return absl::OkStatus();
}

}  // namespace lengthwise::server
