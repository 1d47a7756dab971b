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
#include "prometheus/metric_type.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::monitoring {

using Labels = std::vector<std::pair<std::string, std::string>>;
using Families = std::vector<prometheus::MetricFamily>;
// Reads families for a scrape.
using Source = std::function<Families()>;

// Returns a family without a series. Its name, type and help are exported nonetheless.
prometheus::MetricFamily MakeFamily(const char* name, prometheus::MetricType type,
                                    const char* help);

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
