// How far watchers are behind the event log, as metrics.
#ifndef LENGTHWISE_SERVER_MONITORING_STREAM_METRICS_H_
#define LENGTHWISE_SERVER_MONITORING_STREAM_METRICS_H_

#include <memory>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/services/open_streams.h"

namespace lengthwise::server {

// Reads the streams at every scrape. Thread-safe.
class StreamMetrics final : public prometheus::Collectable {
 public:
  explicit StreamMetrics(std::shared_ptr<OpenStreams> streams);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::shared_ptr<OpenStreams> streams_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_MONITORING_STREAM_METRICS_H_
