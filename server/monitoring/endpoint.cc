#include "server/monitoring/endpoint.h"

#include <utility>
#include <vector>

#include "platform/status_macros.h"
#include "server/monitoring/audit_metrics.h"
#include "server/monitoring/statistics_metrics.h"
#include "server/monitoring/stream_metrics.h"

namespace lengthwise::server {

MonitoringEndpoint::MonitoringEndpoint()
    : registry_(std::make_shared<prometheus::Registry>()),
      rpc_metrics_(*registry_),
      streams_(std::make_shared<OpenStreams>()) {}

absl::StatusOr<std::unique_ptr<MonitoringEndpoint>> MonitoringEndpoint::Start(
    const std::string& listen, std::function<Statistics()> statistics, const AuditLog* audit) {
  std::unique_ptr<MonitoringEndpoint> endpoint(new MonitoringEndpoint);
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables = {
      endpoint->registry_, std::make_shared<StatisticsMetrics>(std::move(statistics)),
      std::make_shared<StreamMetrics>(endpoint->streams_)};
  if (audit != nullptr) collectables.push_back(std::make_shared<AuditMetrics>(*audit));
  ASSIGN_OR_RETURN(endpoint->http_,
                   monitoring::HttpEndpoint::Start(listen, "server", std::move(collectables)));
  return endpoint;
}

}  // namespace lengthwise::server
