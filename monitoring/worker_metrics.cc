#include <algorithm>
#include <utility>

#include "monitoring/families.h"
#include "monitoring/samples.h"

namespace lengthwise::monitoring {
namespace {

using prometheus::MetricFamily;
using Measurements = v1::WorkerMeasurements;

// A family with one series per worker.
struct Metric {
  const char* name;
  double (*value)(const Measurements&);
  // Exported only for workers whose driver reports GPU use.
  bool of_gpu = false;
};

constexpr Metric kMetrics[] = {
    {"lengthwise_worker_steps_total",
     [](const Measurements& m) { return static_cast<double>(m.steps()); }},
    {"lengthwise_worker_model_steps_total",
     [](const Measurements& m) { return static_cast<double>(m.model_steps()); }},
    {"lengthwise_worker_data_wait_seconds_total",
     [](const Measurements& m) { return m.data_wait_seconds(); }},
    {"lengthwise_worker_evaluation_seconds_total",
     [](const Measurements& m) { return m.evaluation_seconds(); }},
    {"lengthwise_worker_checkpoints_total",
     [](const Measurements& m) { return static_cast<double>(m.checkpoints()); }},
    {"lengthwise_worker_checkpoint_seconds_total",
     [](const Measurements& m) { return m.checkpoint_seconds(); }},
    {"lengthwise_worker_checkpoint_bytes_total",
     [](const Measurements& m) { return static_cast<double>(m.checkpoint_bytes()); }},
    {"lengthwise_worker_trials",
     [](const Measurements& m) { return static_cast<double>(m.trials()); }},
    {"lengthwise_worker_unsent_events",
     [](const Measurements& m) { return static_cast<double>(m.unsent_events()); }},
    {"lengthwise_worker_unsent_bytes",
     [](const Measurements& m) { return static_cast<double>(m.unsent_bytes()); }},
    {"lengthwise_worker_resident_memory_bytes",
     [](const Measurements& m) { return static_cast<double>(m.resident_memory_bytes()); }},
    {"lengthwise_worker_gpu_memory_used_bytes",
     [](const Measurements& m) { return static_cast<double>(m.gpu().memory_used_bytes()); }, true},
    {"lengthwise_worker_gpu_memory_bytes",
     [](const Measurements& m) { return static_cast<double>(m.gpu().memory_total_bytes()); }, true},
    {"lengthwise_worker_gpu_utilization_ratio",
     [](const Measurements& m) { return m.gpu().utilization(); }, true},
};

}  // namespace

Families WorkerMetrics(absl::Span<const WorkerSample> workers) {
  workers = workers.first(std::min(workers.size(), kMostWorkers));
  MetricFamily info = MakeFamily("lengthwise_worker_info");
  MetricFamily capacity = MakeFamily("lengthwise_worker_max_pack_trials");
  MetricFamily clock = MakeFamily("lengthwise_worker_clock_ahead_seconds");
  MetricFamily steps = MakeFamily("lengthwise_worker_step_seconds");
  for (const WorkerSample& worker : workers) {
    const Labels labels = {{"worker", worker.worker_id}};
    AddValue({{"worker", worker.worker_id},
              {"host", worker.provenance.host()},
              {"device", worker.provenance.device()},
              {"version", worker.provenance.program_version()}},
             1, info);
    AddValue(labels, worker.max_pack_size, capacity);
    if (worker.clock_ahead_seconds.has_value()) {
      AddValue(labels, *worker.clock_ahead_seconds, clock);
    }
    const v1::Histogram& histogram = worker.measurements.step_seconds();
    if (IsSound(histogram)) AddHistogram(labels, histogram, steps);
  }
  Families families = {std::move(info), std::move(capacity), std::move(clock), std::move(steps)};
  for (const Metric& metric : kMetrics) {
    MetricFamily& family = families.emplace_back(MakeFamily(metric.name));
    for (const WorkerSample& worker : workers) {
      if (metric.of_gpu && !worker.measurements.has_gpu()) continue;
      AddValue({{"worker", worker.worker_id}}, metric.value(worker.measurements), family);
    }
  }
  return families;
}

}  // namespace lengthwise::monitoring
