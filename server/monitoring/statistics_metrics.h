// The coordinator's statistics as Prometheus metrics. Read at every scrape: nothing is kept here,
// so a number cannot drift from what the server knows.
#ifndef LENGTHWISE_SERVER_MONITORING_STATISTICS_METRICS_H_
#define LENGTHWISE_SERVER_MONITORING_STATISTICS_METRICS_H_

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/coordinator.h"

namespace lengthwise::server {

// The families for one snapshot, also those without a series. All begin with "lengthwise_";
// METRICS.md explains them.
std::vector<prometheus::MetricFamily> ToMetrics(const Coordinator::Statistics& statistics);

class StatisticsMetrics final : public prometheus::Collectable {
 public:
  // `coordinator` outlives the object.
  explicit StatisticsMetrics(Coordinator& coordinator) : coordinator_(coordinator) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  Coordinator& coordinator_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_MONITORING_STATISTICS_METRICS_H_
