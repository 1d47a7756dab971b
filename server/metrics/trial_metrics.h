// Exports the running trials as Prometheus metrics.
#ifndef LENGTHWISE_SERVER_METRICS_TRIAL_METRICS_H_
#define LENGTHWISE_SERVER_METRICS_TRIAL_METRICS_H_

#include <vector>

#include "monitoring/families.h"
#include "prometheus/metric_family.h"
#include "server/coordination/statistics.h"

namespace lengthwise::server {

// Returns the families with the labels `experiment` and `trial`, including those without a series.
// Covers only statistics.running_trials, which is bounded, so that scrapes stay small.
std::vector<prometheus::MetricFamily> TrialMetrics(const Statistics& statistics);

// Adds one series per state to `family`: `labels`, followed by the label `state`.
void AddTrialCounts(const monitoring::Labels& labels, const v1::TrialCounts& counts,
                    prometheus::MetricFamily& family);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_METRICS_TRIAL_METRICS_H_
