// FairQueue: the packs that can be leased now, in their order. A higher priority goes first. At
// equal priority, the owner with the fewest running models goes first; among equals, the one that
// was served longest ago. An owner's packs are ordered by the key of their first trial, which is
// the order of submission and of the grid. Pure: uses neither time nor workers.
#ifndef LENGTHWISE_SERVER_SCHEDULING_FAIR_QUEUE_H_
#define LENGTHWISE_SERVER_SCHEDULING_FAIR_QUEUE_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lengthwise::server {

// Key of a trial in the store. Ascends in the order of submission and of the grid.
using TrialKey = int64_t;

// Trials with the same id may train together.
struct PackId {
  int64_t pack = 0;
  int64_t checkpoint_step = 0;
  // Maximum number of them at once. 0: as many as the worker takes.
  int32_t limit = 0;

  friend auto operator<=>(const PackId&, const PackId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PackId& id) {
    return H::combine(std::move(h), id.pack, id.checkpoint_step, id.limit);
  }
};

// Not thread-safe. Each call costs O(log n) for n packs and owners. A call that changes an owner's
// share costs that for each priority at which the owner waits.
class FairQueue {
 public:
  using Trials = absl::btree_set<TrialKey>;

  // All trials of a pack have the same priority, owner and experiment. All packs of an experiment
  // have the same priority and owner.
  void Insert(const PackId& id, int32_t priority, absl::string_view owner,
              absl::string_view experiment, TrialKey trial);
  // The trial must have been inserted.
  void Remove(const PackId& id, TrialKey trial);

  // Changes the owner's number of running models by `by`.
  void AddRunning(absl::string_view owner, int64_t by);
  // The owner got a lease. `number` must be larger than those of all leases before.
  void Serve(absl::string_view owner, int64_t number);

  bool empty() const { return turns_.empty(); }
  int64_t trials() const { return trials_; }
  // Priority and owner of the next pack. The queue must not be empty.
  int32_t next_priority() const { return -turns_.begin()->priority; }
  const std::string& next_owner() const { return owners_.at(turns_.begin()->owner).name; }

  // The next pack that `accept` accepts, of one experiment unless that is empty. Null if there is
  // none. Valid until the queue changes. Packs that are not accepted cost O(1) each.
  template <typename Accept>
  const PackId* Next(absl::string_view experiment, const Accept& accept) const {
    const auto first = [&](const Line& line) {
      const auto found = std::find_if(line.begin(), line.end(),
                                      [&](const auto& pack) { return accept(pack.second); });
      return found == line.end() ? nullptr : &found->second;
    };
    if (!experiment.empty()) {
      const auto line = experiments_.find(experiment);
      return line == experiments_.end() ? nullptr : first(line->second);
    }
    for (const Turn& turn : turns_) {
      const PackId* const found = first(owners_.at(turn.owner).lines.at(turn.priority));
      if (found != nullptr) return found;
    }
    return nullptr;
  }
  // The trials of a queued pack.
  const Trials& trials_of(const PackId& id) const { return packs_.at(id).trials; }

  // Calls `visit` with each pack and its number of trials, in any order. O(packs).
  template <typename Visit>
  void ForEachPack(const Visit& visit) const {
    for (const auto& [id, pack] : packs_) visit(id, static_cast<int64_t>(pack.trials.size()));
  }

  bool Contains(const PackId& id) const { return packs_.contains(id); }
  // Number of packs of a higher priority. O(owners of such packs).
  int64_t PacksAbove(int32_t priority) const;
  // Number of packs of the same owner and priority that go before this one, counted up to
  // `at_most`.
  int64_t PacksBefore(const PackId& id, int64_t at_most) const;
  int64_t Running(absl::string_view owner) const;

  // Checks that all indices agree. INTERNAL names the violation. For tests: O(n).
  absl::Status CheckInvariants() const;

 private:
  using OwnerNumber = int64_t;
  struct Pack {
    int32_t priority = 0;
    OwnerNumber owner = 0;
    std::string experiment;
    Trials trials;
  };
  // Packs by the key of their first trial.
  using Line = absl::btree_map<TrialKey, PackId>;
  struct Owner {
    std::string name;
    int64_t running = 0;
    int64_t served = 0;
    absl::btree_map<int32_t, Line> lines;  // by -priority; never empty
  };
  // An owner's line of packs that waits to be served. The smallest is next.
  struct Turn {
    int32_t priority = 0;  // negated
    int64_t running = 0;
    int64_t served = 0;
    OwnerNumber owner = 0;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  static Turn TurnOf(int32_t negated_priority, OwnerNumber number, const Owner& owner) {
    return {negated_priority, owner.running, owner.served, number};
  }
  OwnerNumber Find(absl::string_view name);
  // Applies `change` to an owner's share, and updates the turns of its lines accordingly.
  template <typename Change>
  void ChangeShare(absl::string_view name, const Change& change);
  void ForgetIfIdle(OwnerNumber number);
  // Adds a pack to the lines of its owner and its experiment, or removes it. It stands there under
  // its first trial, so it moves when that changes.
  void Stand(const PackId& id, const Pack& pack);
  void Leave(const Pack& pack);

  absl::flat_hash_map<PackId, Pack> packs_;
  absl::flat_hash_map<std::string, OwnerNumber> numbers_;
  absl::flat_hash_map<OwnerNumber, Owner> owners_;  // owners with waiting or running trials
  absl::btree_set<Turn> turns_;
  absl::flat_hash_map<std::string, Line> experiments_;  // never empty
  OwnerNumber last_owner_ = 0;
  int64_t last_served_ = 0;
  int64_t trials_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SCHEDULING_FAIR_QUEUE_H_
