// The server's HTTP endpoint for Prometheus, http://HOST:PORT/metrics. METRICS.md explains every
// metric.
#ifndef LENGTHWISE_SERVER_METRICS_ENDPOINT_H_
#define LENGTHWISE_SERVER_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "monitoring/http_endpoint.h"
#include "prometheus/registry.h"
#include "server/api/open_streams.h"
#include "server/coordination/statistics.h"
#include "server/edge/certificate_files.h"
#include "server/metrics/rpc_metrics.h"
#include "server/security/audit_log.h"
#include "server/security/token_store.h"

namespace lengthwise::server {

class MonitoringEndpoint {
 public:
  // Serves on "HOST:PORT" (an IPv4 address or "[IPv6]"; port 0 takes a free one) until destroyed.
  // Each scrape calls `statistics`. `audit`, `tokens` and `certificates` may be null and must
  // outlive the endpoint. FAILED_PRECONDITION when the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<MonitoringEndpoint>> Start(
      const std::string& listen, std::function<Statistics()> statistics,
      const AuditLog* audit = nullptr, TokenStore* tokens = nullptr,
      const CertificateFiles* certificates = nullptr);

  // Bound address, "HOST:PORT".
  const std::string& address() const { return http_->address(); }
  // The gRPC server reports its calls to rpc_metrics() and registers its open streams in
  // streams(). It must stop before the endpoint is destroyed.
  RpcMetrics& rpc_metrics() { return rpc_metrics_; }
  const std::shared_ptr<OpenStreams>& streams() const { return streams_; }

 private:
  MonitoringEndpoint() = default;

  prometheus::Registry registry_;
  RpcMetrics rpc_metrics_{registry_};
  const std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
  std::unique_ptr<monitoring::HttpEndpoint> http_;  // reads the others
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_METRICS_ENDPOINT_H_
