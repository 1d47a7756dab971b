// Exports workers' measurements as Prometheus metrics. The server exports those of its live
// workers; a worker with an endpoint exports its own under the same names and labels.
#ifndef LENGTHWISE_MONITORING_WORKER_METRICS_H_
#define LENGTHWISE_MONITORING_WORKER_METRICS_H_

#include <vector>

#include "absl/types/span.h"
#include "monitoring/samples.h"
#include "prometheus/metric_family.h"

namespace lengthwise::monitoring {

// Maximum number of workers with series of their own. Further ones count only in
// lengthwise_workers_alive.
inline constexpr size_t kMostWorkers = 500;

// Returns all families, including those without a series. Each series has the label `worker`.
std::vector<prometheus::MetricFamily> WorkerMetrics(absl::Span<const WorkerSample> workers);

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_WORKER_METRICS_H_
