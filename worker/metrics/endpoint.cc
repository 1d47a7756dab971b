#include "worker/metrics/endpoint.h"

#include <utility>
#include <vector>

#include "monitoring/families.h"

namespace lengthwise::worker {
namespace {

class OwnMetrics final : public prometheus::Collectable {
 public:
  explicit OwnMetrics(std::function<monitoring::WorkerSample()> read) : read_(std::move(read)) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return monitoring::WorkerMetrics({read_()});
  }

 private:
  const std::function<monitoring::WorkerSample()> read_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<monitoring::HttpEndpoint>> StartMetricsEndpoint(
    const std::string& listen, std::function<monitoring::WorkerSample()> read) {
  return monitoring::HttpEndpoint::Start(listen, "worker",
                                         {std::make_shared<OwnMetrics>(std::move(read))});
}

}  // namespace lengthwise::worker
