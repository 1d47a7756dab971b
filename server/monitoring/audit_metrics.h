// Lines of the audit log, as a metric.
#ifndef LENGTHWISE_SERVER_MONITORING_AUDIT_METRICS_H_
#define LENGTHWISE_SERVER_MONITORING_AUDIT_METRICS_H_

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/access/audit_log.h"

namespace lengthwise::server {

// Reads the log's counts at every scrape. Thread-safe.
class AuditMetrics final : public prometheus::Collectable {
 public:
  // `log` outlives the object.
  explicit AuditMetrics(const AuditLog& log) : log_(log) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const AuditLog& log_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_MONITORING_AUDIT_METRICS_H_
