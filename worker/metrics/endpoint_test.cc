// Serves a worker's metrics as main.cc does.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/families.h"
#include "monitoring/http_endpoint.h"
#include "monitoring/testing/scrape.h"

namespace lengthwise::worker {
namespace {

using ::testing::HasSubstr;

TEST(WorkerEndpoint, ServesTheWorkersMetrics) {
  monitoring::WorkerSample sample;
  sample.worker_id = "n07-cpu-12";
  const auto endpoint =
      monitoring::HttpEndpoint::Start("127.0.0.1:0", "worker",
                                      {[&sample] { return monitoring::WorkerMetrics({sample}); }})
          .value();
  EXPECT_THAT(monitoring::Scrape(endpoint->address()),
              HasSubstr("\nlengthwise_worker_steps_total{worker=\"n07-cpu-12\"} 0\n"));
  sample.measurements.set_steps(41);
  const std::string text = monitoring::Scrape(endpoint->address());
  EXPECT_THAT(text, HasSubstr("\nlengthwise_worker_steps_total{worker=\"n07-cpu-12\"} 41\n"));
  EXPECT_THAT(text, HasSubstr("\nlengthwise_build_info{program=\"worker\","));
}

}  // namespace
}  // namespace lengthwise::worker
