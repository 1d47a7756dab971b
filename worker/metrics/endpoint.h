// A worker's own endpoint for Prometheus, where one is asked for: what the server exports of the
// worker, without the way over the server.
#ifndef LENGTHWISE_WORKER_METRICS_ENDPOINT_H_
#define LENGTHWISE_WORKER_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "monitoring/http_endpoint.h"
#include "monitoring/worker_sample.h"

namespace lengthwise::worker {

// Serves on "HOST:PORT" until destroyed; `read` is called at every scrape, on the endpoint's
// threads. FAILED_PRECONDITION when the address cannot be bound.
absl::StatusOr<std::unique_ptr<monitoring::HttpEndpoint>> StartMetricsEndpoint(
    const std::string& listen, std::function<monitoring::WorkerSample()> read);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_METRICS_ENDPOINT_H_
