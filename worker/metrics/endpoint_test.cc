#include "worker/metrics/endpoint.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/testing/scrape.h"

namespace lengthwise::worker {
namespace {

using ::testing::HasSubstr;

TEST(WorkerEndpoint, ServesTheWorkersMetrics) {
  monitoring::WorkerSample sample;
  sample.worker_id = "n07-cpu-12";
  const auto endpoint = StartMetricsEndpoint("127.0.0.1:0", [&sample] { return sample; }).value();
  EXPECT_THAT(monitoring::Scrape(endpoint->address()),
              HasSubstr("\nlengthwise_worker_steps_total{worker=\"n07-cpu-12\"} 0\n"));
  sample.measurements.set_steps(41);
  const std::string text = monitoring::Scrape(endpoint->address());
  EXPECT_THAT(text, HasSubstr("\nlengthwise_worker_steps_total{worker=\"n07-cpu-12\"} 41\n"));
  EXPECT_THAT(text, HasSubstr("\nlengthwise_build_info{program=\"worker\","));
}

TEST(WorkerEndpoint, ReportsAPortInUse) {
  const auto read = [] { return monitoring::WorkerSample(); };
  const auto first = StartMetricsEndpoint("127.0.0.1:0", read).value();
  EXPECT_EQ(StartMetricsEndpoint(first->address(), read).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace lengthwise::worker
