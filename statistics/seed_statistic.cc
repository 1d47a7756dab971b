#include "statistics/seed_statistic.h"

#include <algorithm>
#include <cstdint>

#include "statistics/summary.h"

namespace lengthwise::statistics {

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

}  // namespace lengthwise::statistics
