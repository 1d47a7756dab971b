#include "client/analysis/seed_comparison.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lengthwise::client {
namespace {

// The first trial of each seed counts.
std::map<Seeds, double> BySeed(const TrialSet& set,
                               const std::map<std::string, double>& accuracies) {
  std::map<Seeds, double> by_seed;
  for (const v1::Trial* trial : set.trials) {
    const auto accuracy = accuracies.find(trial->name());
    if (accuracy != accuracies.end()) by_seed.emplace(SeedsOf(*trial), accuracy->second);
  }
  return by_seed;
}

}  // namespace

absl::StatusOr<std::vector<SeedComparison>> CompareSeeds(
    const std::vector<TrialSet>& sets, absl::string_view reference,
    const std::map<std::string, double>& accuracies) {
  if (absl::Status status = CheckReference(reference, sets); !status.ok()) return status;
  std::vector<SeedComparison> comparisons;
  for (const TrialSet& set : sets) {
    const TrialSet* const partner = ReferenceOf(set, reference, sets);
    if (partner == nullptr || partner == &set) continue;
    SeedComparison comparison{.set = &set};
    const std::map<Seeds, double> others = BySeed(*partner, accuracies);
    for (const auto& [seeds, accuracy] : BySeed(set, accuracies)) {
      const auto other = others.find(seeds);
      if (other == others.end()) continue;
      comparison.own.push_back(accuracy);
      comparison.reference.push_back(other->second);
    }
    if (comparison.own.empty()) continue;
    auto test = statistics::PairedTTest(comparison.reference, comparison.own);
    if (test.ok()) comparison.test = *test;
    comparisons.push_back(std::move(comparison));
  }
  if (comparisons.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no other encoding was evaluated with a seed of ", reference,
                     "; a paired test needs trials with the same task, network, training, learning "
                     "rate and seeds"));
  }
  return comparisons;
}

}  // namespace lengthwise::client
