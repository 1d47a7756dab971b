#include "monitoring/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lengthwise::monitoring {

v1::Histogram EmptyHistogram(absl::Span<const double> upper_bounds) {
  v1::Histogram histogram;
  histogram.mutable_upper_bounds()->Add(upper_bounds.begin(), upper_bounds.end());
  histogram.mutable_counts()->Resize(static_cast<int>(upper_bounds.size()) + 1, 0);
  return histogram;
}

void Observe(double value, v1::Histogram& histogram) {
  const auto& bounds = histogram.upper_bounds();
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  int64_t& count = *histogram.mutable_counts()->Mutable(static_cast<int>(bucket));
  ++count;
  histogram.set_sum(histogram.sum() + value);
}

int64_t Count(const v1::Histogram& histogram) {
  return std::accumulate(histogram.counts().begin(), histogram.counts().end(), int64_t{0});
}

bool IsSound(const v1::Histogram& histogram) {
  const auto& bounds = histogram.upper_bounds();
  // std::is_sorted would accept NaNs, because no comparison with one is true.
  bool ascend = bounds.empty() || !std::isnan(bounds[0]);
  for (int i = 1; i < bounds.size(); ++i) ascend = ascend && bounds[i - 1] < bounds[i];
  return histogram.counts_size() == bounds.size() + 1 && histogram.counts_size() <= kMostBuckets &&
         ascend &&
         std::all_of(histogram.counts().begin(), histogram.counts().end(),
                     [](int64_t count) { return count >= 0; });
}

}  // namespace lengthwise::monitoring
