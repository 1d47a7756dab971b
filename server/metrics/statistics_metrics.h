// The statistics as Prometheus metrics. Read at every scrape: nothing is kept here,
// so a number cannot drift from what the server knows.
#ifndef LENGTHWISE_SERVER_METRICS_STATISTICS_METRICS_H_
#define LENGTHWISE_SERVER_METRICS_STATISTICS_METRICS_H_

#include <functional>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/coordination/statistics.h"

namespace lengthwise::server {

// The families for one snapshot, also those without a series. All begin with "lengthwise_";
// METRICS.md explains them.
std::vector<prometheus::MetricFamily> ToMetrics(const Statistics& statistics);

class StatisticsMetrics final : public prometheus::Collectable {
 public:
  explicit StatisticsMetrics(std::function<Statistics()> statistics)
      : statistics_(std::move(statistics)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::function<Statistics()> statistics_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_METRICS_STATISTICS_METRICS_H_
