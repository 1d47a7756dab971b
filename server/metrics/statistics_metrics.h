// The server's statistics as Prometheus metrics. Keeps no state of its own: each scrape reads the
// statistics, so no metric can drift from the server's state.
#ifndef LENGTHWISE_SERVER_METRICS_STATISTICS_METRICS_H_
#define LENGTHWISE_SERVER_METRICS_STATISTICS_METRICS_H_

#include "monitoring/families.h"
#include "server/coordination/statistics.h"

namespace lengthwise::server {

// Returns the families of one snapshot, including those without a series. All names begin with
// "lengthwise_"; METRICS.md explains them.
monitoring::Families ToMetrics(const Statistics& statistics);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_METRICS_STATISTICS_METRICS_H_
