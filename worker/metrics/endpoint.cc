#include "worker/metrics/endpoint.h"

#include <utility>

#include "monitoring/families.h"

namespace lengthwise::worker {

absl::StatusOr<std::unique_ptr<monitoring::HttpEndpoint>> StartMetricsEndpoint(
    const std::string& listen, std::function<monitoring::WorkerSample()> read) {
  return monitoring::HttpEndpoint::Start(
      listen, "worker", {[read = std::move(read)] { return monitoring::WorkerMetrics({read()}); }});
}

}  // namespace lengthwise::worker
