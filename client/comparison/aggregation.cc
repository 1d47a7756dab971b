#include "client/comparison/aggregation.h"

#include <algorithm>
#include <cmath>

namespace lengthwise::client {
namespace {

Measurement MeanOf(const SeedStatistic& seeds) {
  Measurement measurement{.value = seeds.mean(), .trials = seeds.trials()};
  if (seeds.trials() >= 2) measurement.deviation = seeds.deviation();
  return measurement;
}

// Mean and deviation of the union: the squares within the configurations and between them.
Measurement MeanOfAll(const std::vector<SeedStatistic>& configurations) {
  Measurement all;
  for (const SeedStatistic& seeds : configurations) {
    all.trials += seeds.trials();
    all.value += seeds.mean() * seeds.trials();
  }
  all.value /= all.trials;
  if (all.trials < 2) return all;
  double squares = 0;
  for (const SeedStatistic& seeds : configurations) {
    if (seeds.trials() == 0) continue;
    squares += (seeds.trials() - 1) * std::pow(seeds.deviation(), 2) +
               seeds.trials() * std::pow(seeds.mean() - all.value, 2);
  }
  all.deviation = std::sqrt(squares / (all.trials - 1));
  return all;
}

}  // namespace

std::optional<Measurement> Aggregate(const std::vector<SeedStatistic>& configurations,
                                     Statistic statistic) {
  int trials = 0;
  const SeedStatistic* best = nullptr;
  const SeedStatistic* lowest = nullptr;
  double maximum = 0;
  for (const SeedStatistic& seeds : configurations) {
    if (seeds.trials() == 0) continue;
    maximum = trials == 0 ? seeds.max() : std::max(maximum, seeds.max());
    trials += seeds.trials();
    if (best == nullptr || seeds.mean() > best->mean()) best = &seeds;
    if (lowest == nullptr || seeds.mean() < lowest->mean()) lowest = &seeds;
  }
  if (trials == 0) return std::nullopt;
  switch (statistic) {
    case Statistic::kMaximum:
      return Measurement{.value = maximum, .trials = trials};
    case Statistic::kMeanAtBestRate:
      return MeanOf(*best);
    case Statistic::kMeanOfAll:
      return MeanOfAll(configurations);
    case Statistic::kMedian:
      return Measurement{.value = lowest->mean(), .trials = lowest->trials()};
  }
  return std::nullopt;
}

}  // namespace lengthwise::client
