#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "monitoring/families.h"
#include "monitoring/samples.h"
#include "prometheus/metric_type.h"
#include "prometheus/text_serializer.h"

namespace lengthwise::monitoring {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const std::vector<WorkerSample>& workers) {
  return prometheus::TextSerializer().Serialize(WorkerMetrics(workers));
}

TEST(MakeFamily, HasTheTypeAndTheFirstSentenceOfThePage) {
  const auto counter = MakeFamily("lengthwise_worker_checkpoint_bytes_total");
  EXPECT_EQ(counter.type, prometheus::MetricType::Counter);
  EXPECT_EQ(counter.help, "Bytes of checkpoints written; they are uploaded to the server");
  const auto gauge = MakeFamily("lengthwise_leases");
  EXPECT_EQ(gauge.type, prometheus::MetricType::Gauge);
  EXPECT_EQ(gauge.help, "Packs leased to workers") << "the page has more sentences";
  EXPECT_EQ(MakeFamily("lengthwise_lease_trials").type, prometheus::MetricType::Histogram);
}

TEST(WorkerMetrics, ExportAWorkersMeasurements) {
  WorkerSample worker = {.worker_id = "w", .max_pack_size = 30, .clock_ahead_seconds = -600};
  worker.provenance.set_host("n07");
  worker.provenance.set_device("NVIDIA H100");
  worker.provenance.set_program_version("0.1.0");
  v1::WorkerMeasurements& measured = worker.measurements;
  measured.set_steps(2);
  measured.set_model_steps(60);
  *measured.mutable_step_seconds() = EmptyHistogram({0.1, 1});
  Observe(0.05, *measured.mutable_step_seconds());
  Observe(0.5, *measured.mutable_step_seconds());
  measured.set_data_wait_seconds(0.25);
  measured.set_evaluation_seconds(3);
  measured.set_checkpoints(4);
  measured.set_checkpoint_seconds(5);
  measured.set_checkpoint_bytes(6);
  measured.set_trials(7);
  measured.set_unsent_events(8);
  measured.set_unsent_bytes(9);
  measured.set_resident_memory_bytes(10);
  measured.mutable_gpu()->set_memory_used_bytes(11);
  measured.mutable_gpu()->set_memory_total_bytes(12);
  measured.mutable_gpu()->set_utilization(0.5);
  const std::string text = Text({worker});
  for (const char* line :
       {"info{worker=\"w\",host=\"n07\",device=\"NVIDIA H100\",version=\"0.1.0\"} 1",
        "max_pack_trials{worker=\"w\"} 30",
        "clock_ahead_seconds{worker=\"w\"} -600",
        "steps_total{worker=\"w\"} 2",
        "model_steps_total{worker=\"w\"} 60",
        "step_seconds_bucket{worker=\"w\",le=\"0.1\"} 1",
        "step_seconds_bucket{worker=\"w\",le=\"1\"} 2",
        "step_seconds_bucket{worker=\"w\",le=\"+Inf\"} 2",
        "step_seconds_sum{worker=\"w\"} 0.55",
        "data_wait_seconds_total{worker=\"w\"} 0.25",
        "evaluation_seconds_total{worker=\"w\"} 3",
        "checkpoints_total{worker=\"w\"} 4",
        "checkpoint_seconds_total{worker=\"w\"} 5",
        "checkpoint_bytes_total{worker=\"w\"} 6",
        "trials{worker=\"w\"} 7",
        "unsent_events{worker=\"w\"} 8",
        "unsent_bytes{worker=\"w\"} 9",
        "resident_memory_bytes{worker=\"w\"} 10",
        "gpu_memory_used_bytes{worker=\"w\"} 11",
        "gpu_memory_bytes{worker=\"w\"} 12",
        "gpu_utilization_ratio{worker=\"w\"} 0.5"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\nlengthwise_worker_", line)));
  }
}

TEST(WorkerMetrics, WorkerWithoutGpuHasNoGpuSeries) {
  const std::string text = Text({{.worker_id = "w"}});
  EXPECT_THAT(text, HasSubstr("# TYPE lengthwise_worker_gpu_memory_bytes gauge\n"));
  EXPECT_THAT(text, Not(HasSubstr("lengthwise_worker_gpu_memory_bytes{")));
  // One that sent no distribution, either.
  EXPECT_THAT(text, Not(HasSubstr("lengthwise_worker_step_seconds_count{")));
}

TEST(WorkerMetrics, CoverABoundedNumberOfWorkers) {
  std::vector<WorkerSample> workers(kMostWorkers + 10);
  for (size_t i = 0; i < workers.size(); ++i) workers[i].worker_id = absl::StrCat("w", i);
  const std::string text = Text(workers);
  EXPECT_THAT(text, HasSubstr(absl::StrCat("\"w", kMostWorkers - 1, "\"")));
  EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("\"w", kMostWorkers, "\""))));
}

}  // namespace
}  // namespace lengthwise::monitoring
