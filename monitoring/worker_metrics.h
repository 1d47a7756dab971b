// Workers' measurements as metrics: the server exports those of its live workers, a worker with an
// endpoint its own, under the same names and labels.
#ifndef LENGTHWISE_MONITORING_WORKER_METRICS_H_
#define LENGTHWISE_MONITORING_WORKER_METRICS_H_

#include <vector>

#include "absl/types/span.h"
#include "monitoring/worker_sample.h"
#include "prometheus/metric_family.h"

namespace lengthwise::monitoring {

// Workers that a server shows one by one; more count in lengthwise_workers_alive alone.
inline constexpr size_t kMostWorkers = 500;

// All families, also those without a series; each series has the label `worker`.
std::vector<prometheus::MetricFamily> WorkerMetrics(absl::Span<const WorkerSample> workers);

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_WORKER_METRICS_H_
