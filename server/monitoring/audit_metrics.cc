#include "server/monitoring/audit_metrics.h"

#include "monitoring/families.h"

namespace lengthwise::server {

std::vector<prometheus::MetricFamily> AuditMetrics::Collect() const {
  const AuditLog::Counts counts = log_.counts();
  prometheus::MetricFamily lines =
      monitoring::MakeFamily("lengthwise_audit_lines_total", prometheus::MetricType::Counter,
                             "Lines of the audit log, by what became of them.");
  const auto add = [&](const char* result, int64_t count) {
    monitoring::AddValue({{"result", result}}, static_cast<double>(count), lines);
  };
  add("written", counts.written);
  add("suppressed", counts.suppressed);
  add("lost", counts.lost);
  return {lines};
}

}  // namespace lengthwise::server
