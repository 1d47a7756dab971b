// The trials that run now as metrics.
#ifndef LENGTHWISE_SERVER_METRICS_TRIAL_METRICS_H_
#define LENGTHWISE_SERVER_METRICS_TRIAL_METRICS_H_

#include <vector>

#include "monitoring/families.h"
#include "prometheus/metric_family.h"
#include "server/coordination/statistics.h"

namespace lengthwise::server {

// Families with the labels `experiment` and `trial`, of statistics.running_trials alone; also those
// without a series.
std::vector<prometheus::MetricFamily> TrialMetrics(const Statistics& statistics);

// A series for each state, with the label `state` behind `labels`.
void AddTrialCounts(const monitoring::Labels& labels, const v1::TrialCounts& counts,
                    prometheus::MetricFamily& family);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_METRICS_TRIAL_METRICS_H_
