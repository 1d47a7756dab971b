#include "server/metrics/endpoint.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "monitoring/families.h"
#include "platform/status_macros.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/metrics/statistics_metrics.h"

namespace lengthwise::server {
namespace {

using monitoring::AddValue;
using monitoring::MakeFamily;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Exports the audit log's line counts, read at every scrape. Thread-safe.
class AuditMetrics final : public prometheus::Collectable {
 public:
  // `log` outlives the object.
  explicit AuditMetrics(const AuditLog& log) : log_(log) {}

  std::vector<MetricFamily> Collect() const override {
    const AuditLog::Counts counts = log_.counts();
    MetricFamily lines = MakeFamily("lengthwise_audit_lines_total", MetricType::Counter,
                                    "Audit log lines, by result.");
    const auto add = [&](const char* result, int64_t count) {
      AddValue({{"result", result}}, static_cast<double>(count), lines);
    };
    add("written", counts.written);
    add("suppressed", counts.suppressed);
    add("lost", counts.lost);
    return {lines};
  }

 private:
  const AuditLog& log_;
};

// Exports the watchers' lag behind the event log, read at every scrape. Thread-safe.
class StreamMetrics final : public prometheus::Collectable {
 public:
  explicit StreamMetrics(std::shared_ptr<OpenStreams> streams) : streams_(std::move(streams)) {}

  std::vector<MetricFamily> Collect() const override {
    const OpenStreams::Lags lags = streams_->ReadLags(absl::Now());
    MetricFamily lag = MakeFamily("lengthwise_watcher_lag_seconds", MetricType::Gauge,
                                  "Lag of the slowest watcher, in seconds; 0 when all watchers are "
                                  "up to date.");
    AddValue({}, absl::ToDoubleSeconds(lags.longest), lag);
    MetricFamily behind =
        MakeFamily("lengthwise_watchers_behind", MetricType::Gauge, "Watchers with unsent events.");
    AddValue({}, static_cast<double>(lags.behind), behind);
    return {std::move(lag), std::move(behind)};
  }

 private:
  const std::shared_ptr<OpenStreams> streams_;
};

}  // namespace

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
