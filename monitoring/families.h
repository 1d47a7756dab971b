// Builds metric families from values that are read at scrape time, and those of workers.
#ifndef LENGTHWISE_MONITORING_FAMILIES_H_
#define LENGTHWISE_MONITORING_FAMILIES_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "monitoring/samples.h"
#include "prometheus/metric_family.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::monitoring {

using Labels = std::vector<std::pair<std::string, std::string>>;
using Families = std::vector<prometheus::MetricFamily>;
// Reads families for a scrape.
using Source = std::function<Families()>;

// METRICS.md, whose tables have every metric.
extern const char kMetricsPage[];

// Returns a family without a series. Its name is exported nonetheless, with the type that
// METRICS.md gives it and, as help, the first sentence of its meaning.
prometheus::MetricFamily MakeFamily(const std::string& name);

// Adds a series to a counter or gauge family.
void AddValue(const Labels& labels, double value, prometheus::MetricFamily& family);

// Adds a series to a histogram family. `histogram` must be sound (IsSound of samples.h).
void AddHistogram(const Labels& labels, const v1::Histogram& histogram,
                  prometheus::MetricFamily& family);

// Maximum number of workers with series of their own. Further ones count only in
// lengthwise_workers_alive.
inline constexpr size_t kMostWorkers = 500;

// Returns all families, including those without a series. Each series has the label `worker`.
Families WorkerMetrics(absl::Span<const WorkerSample> workers);

}  // namespace lengthwise::monitoring

#endif  // LENGTHWISE_MONITORING_FAMILIES_H_
