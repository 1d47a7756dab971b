#include "server/coordination/seed_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>

namespace lengthwise::server {

double Mean(absl::Span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double SampleStandardDeviation(absl::Span<const double> values) {
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (static_cast<double>(values.size()) - 1));
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

v1::SummarizeExperimentResponse::Statistic SeedStatistic(absl::Span<const double> values) {
  v1::SummarizeExperimentResponse::Statistic statistic;
  if (values.empty()) return statistic;
  statistic.set_trials(static_cast<int32_t>(values.size()));
  statistic.set_mean(Mean(values));
  statistic.set_deviation(values.size() < 2 ? 0 : SampleStandardDeviation(values));
  statistic.set_min(*std::min_element(values.begin(), values.end()));
  statistic.set_max(*std::max_element(values.begin(), values.end()));
  return statistic;
}

}  // namespace lengthwise::server
