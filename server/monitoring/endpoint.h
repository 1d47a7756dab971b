// The HTTP endpoint that Prometheus scrapes: http://HOST:PORT/metrics.
#ifndef LENGTHWISE_SERVER_MONITORING_ENDPOINT_H_
#define LENGTHWISE_SERVER_MONITORING_ENDPOINT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "prometheus/exposer.h"
#include "prometheus/registry.h"
#include "server/coordinator.h"
#include "server/monitoring/rpc_metrics.h"
#include "server/monitoring/statistics_metrics.h"

namespace lengthwise::server {

class MonitoringEndpoint {
 public:
  // Serves on "HOST:PORT" (an IPv4 address or "[IPv6]"; port 0 takes a free one) until destroyed.
  // `coordinator` outlives the endpoint. FAILED_PRECONDITION when the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<MonitoringEndpoint>> Start(const std::string& listen,
                                                                   absl::string_view version,
                                                                   Coordinator& coordinator);

  // Returns soon: CivetWeb by itself may take 2 s to notice that it shall stop.
  ~MonitoringEndpoint();

  // "HOST:PORT" with the port that was bound.
  const std::string& address() const { return address_; }
  // For the gRPC server, which ends before the endpoint.
  RpcMetrics& rpc_metrics() { return rpc_metrics_; }

 private:
  MonitoringEndpoint(absl::string_view version, Coordinator& coordinator);

  std::shared_ptr<prometheus::Registry> registry_;
  RpcMetrics rpc_metrics_;
  std::shared_ptr<StatisticsMetrics> statistics_;
  std::string address_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_MONITORING_ENDPOINT_H_
