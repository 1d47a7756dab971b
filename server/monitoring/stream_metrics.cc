#include "server/monitoring/stream_metrics.h"

#include <utility>

#include "absl/time/clock.h"
#include "monitoring/families.h"

namespace lengthwise::server {

using monitoring::AddValue;
using monitoring::MakeFamily;
using prometheus::MetricFamily;
using prometheus::MetricType;

StreamMetrics::StreamMetrics(std::shared_ptr<OpenStreams> streams) : streams_(std::move(streams)) {}

std::vector<MetricFamily> StreamMetrics::Collect() const {
  const OpenStreams::Lags lags = streams_->ReadLags(absl::Now());
  MetricFamily lag = MakeFamily("lengthwise_watcher_lag_seconds", MetricType::Gauge,
                                "For how long the watcher that is most behind was not given all "
                                "events; 0 when all have everything.");
  AddValue({}, absl::ToDoubleSeconds(lags.longest), lag);
  MetricFamily behind = MakeFamily("lengthwise_watchers_behind", MetricType::Gauge,
                                   "Watchers that were not given all events yet.");
  AddValue({}, static_cast<double>(lags.behind), behind);
  return {std::move(lag), std::move(behind)};
}

}  // namespace lengthwise::server
