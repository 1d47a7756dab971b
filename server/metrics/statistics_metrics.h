// Exports the server's statistics as Prometheus metrics. Keeps no state of its own: each scrape
// reads the statistics, so no metric can drift from the server's state.
#ifndef LENGTHWISE_SERVER_METRICS_STATISTICS_METRICS_H_
#define LENGTHWISE_SERVER_METRICS_STATISTICS_METRICS_H_

#include <functional>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/coordination/statistics.h"

namespace lengthwise::server {

// Returns the families of one snapshot, including those without a series. All names begin with
// "lengthwise_"; METRICS.md explains them.
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
