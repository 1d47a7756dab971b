// Serves the worker's metrics to Prometheus directly, for users who do not scrape them from the
// server.
#ifndef LENGTHWISE_WORKER_METRICS_ENDPOINT_H_
#define LENGTHWISE_WORKER_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "monitoring/http_endpoint.h"
#include "monitoring/samples.h"

namespace lengthwise::worker {

// Serves on "HOST:PORT" until destroyed. Every scrape calls `read` on one of the endpoint's
// threads. FAILED_PRECONDITION if the address cannot be bound.
absl::StatusOr<std::unique_ptr<monitoring::HttpEndpoint>> StartMetricsEndpoint(
    const std::string& listen, std::function<monitoring::WorkerSample()> read);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_METRICS_ENDPOINT_H_
