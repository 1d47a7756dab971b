#include <algorithm>

#include "monitoring/families.h"
#include "monitoring/samples.h"

namespace lengthwise::monitoring {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using Measurements = v1::WorkerMeasurements;

// A family with one series per worker.
struct Metric {
  const char* name;
  MetricType type;
  const char* help;
  double (*value)(const Measurements&);
  // Exported only for workers whose driver reports GPU use.
  bool of_gpu = false;
};

constexpr Metric kMetrics[] = {
    {"lengthwise_worker_steps_total", MetricType::Counter, "Training steps of packs.",
     [](const Measurements& m) { return static_cast<double>(m.steps()); }},
    {"lengthwise_worker_model_steps_total", MetricType::Counter,
     "Training steps of models: a pack's step counts once per trial.",
     [](const Measurements& m) { return static_cast<double>(m.model_steps()); }},
    {"lengthwise_worker_data_wait_seconds_total", MetricType::Counter,
     "Seconds within steps in which the device waited for samples and positions.",
     [](const Measurements& m) { return m.data_wait_seconds(); }},
    {"lengthwise_worker_evaluation_seconds_total", MetricType::Counter,
     "Seconds spent in evaluations, during and after training.",
     [](const Measurements& m) { return m.evaluation_seconds(); }},
    {"lengthwise_worker_checkpoints_total", MetricType::Counter, "Checkpoints written.",
     [](const Measurements& m) { return static_cast<double>(m.checkpoints()); }},
    {"lengthwise_worker_checkpoint_seconds_total", MetricType::Counter,
     "Seconds in which training paused for checkpoints.",
     [](const Measurements& m) { return m.checkpoint_seconds(); }},
    {"lengthwise_worker_checkpoint_bytes_total", MetricType::Counter,
     "Bytes of checkpoints written.",
     [](const Measurements& m) { return static_cast<double>(m.checkpoint_bytes()); }},
    {"lengthwise_worker_trials", MetricType::Gauge,
     "Trials in training or evaluation: the size of the worker's pack.",
     [](const Measurements& m) { return static_cast<double>(m.trials()); }},
    {"lengthwise_worker_unsent_events", MetricType::Gauge, "Events not yet sent to the server.",
     [](const Measurements& m) { return static_cast<double>(m.unsent_events()); }},
    {"lengthwise_worker_unsent_bytes", MetricType::Gauge,
     "Bytes of events and checkpoints not yet sent to the server.",
     [](const Measurements& m) { return static_cast<double>(m.unsent_bytes()); }},
    {"lengthwise_worker_resident_memory_bytes", MetricType::Gauge,
     "Resident memory of the worker process, in bytes.",
     [](const Measurements& m) { return static_cast<double>(m.resident_memory_bytes()); }},
    {"lengthwise_worker_gpu_memory_used_bytes", MetricType::Gauge,
     "Memory of the worker's GPU in use by all processes, in bytes.",
     [](const Measurements& m) { return static_cast<double>(m.gpu().memory_used_bytes()); }, true},
    {"lengthwise_worker_gpu_memory_bytes", MetricType::Gauge, "Memory of the GPU, in bytes.",
     [](const Measurements& m) { return static_cast<double>(m.gpu().memory_total_bytes()); }, true},
    {"lengthwise_worker_gpu_utilization_ratio", MetricType::Gauge,
     "Share of the last sample period in which a kernel ran on the worker's GPU.",
     [](const Measurements& m) { return m.gpu().utilization(); }, true},
};

}  // namespace

Families WorkerMetrics(absl::Span<const WorkerSample> workers) {
  workers = workers.first(std::min(workers.size(), kMostWorkers));
  Families families;
  MetricFamily& info = families.emplace_back(MakeFamily("lengthwise_worker_info", MetricType::Gauge,
                                                        "Always 1; labels describe a worker."));
  for (const WorkerSample& worker : workers) {
    AddValue({{"worker", worker.worker_id},
              {"host", worker.provenance.host()},
              {"device", worker.provenance.device()},
              {"version", worker.provenance.program_version()}},
             1, info);
  }
  MetricFamily& capacity =
      families.emplace_back(MakeFamily("lengthwise_worker_max_pack_trials", MetricType::Gauge,
                                       "Maximum number of trials that the worker trains at once."));
  for (const WorkerSample& worker : workers) {
    AddValue({{"worker", worker.worker_id}}, worker.max_pack_size, capacity);
  }
  MetricFamily& clock = families.emplace_back(
      MakeFamily("lengthwise_worker_clock_ahead_seconds", MetricType::Gauge,
                 "Seconds by which the worker's clock is ahead of the server's."));
  for (const WorkerSample& worker : workers) {
    if (!worker.clock_ahead_seconds.has_value()) continue;
    AddValue({{"worker", worker.worker_id}}, *worker.clock_ahead_seconds, clock);
  }
  MetricFamily& steps =
      families.emplace_back(MakeFamily("lengthwise_worker_step_seconds", MetricType::Histogram,
                                       "Duration of packs' training steps."));
  for (const WorkerSample& worker : workers) {
    const v1::Histogram& histogram = worker.measurements.step_seconds();
    if (IsSound(histogram)) AddHistogram({{"worker", worker.worker_id}}, histogram, steps);
  }
  for (const Metric& metric : kMetrics) {
    MetricFamily& family = families.emplace_back(MakeFamily(metric.name, metric.type, metric.help));
    for (const WorkerSample& worker : workers) {
      if (metric.of_gpu && !worker.measurements.has_gpu()) continue;
      AddValue({{"worker", worker.worker_id}}, metric.value(worker.measurements), family);
    }
  }
  return families;
}

}  // namespace lengthwise::monitoring
