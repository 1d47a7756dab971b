// The process's own use of the machine, under the names that Prometheus' client libraries give:
// process_cpu_seconds_total and its like.
#ifndef LENGTHWISE_MONITORING_PROCESS_METRICS_H_
#define LENGTHWISE_MONITORING_PROCESS_METRICS_H_

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace lengthwise::monitoring {

class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_PROCESS_METRICS_H_
