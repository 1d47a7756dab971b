// A worker's measurements of itself since its start.
#ifndef LENGTHWISE_WORKER_METRICS_MEASUREMENTS_H_
#define LENGTHWISE_WORKER_METRICS_MEASUREMENTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "platform/mutex.h"
#include "proto/worker_service.pb.h"
#include "worker/pack_session.h"

namespace lengthwise::worker {

// Spans leases: its counters only grow. Thread-safe; locks are held briefly.
class Measurements {
 public:
  using ReadGpu = std::function<std::optional<v1::GpuUse>()>;

  // Both are asked at every Read. `read_gpu` is absent for a worker without a GPU, `read_kernels`
  // gives v1::Provenance.kernels of the newest pack.
  explicit Measurements(ReadGpu read_gpu = nullptr,
                        std::function<std::string()> read_kernels = nullptr);

  void CountStep(const PackSession::StepTime& step);
  void CountEvaluation(double seconds);
  void CountCheckpoint(double seconds, int64_t bytes);

  // The counters, and the process's memory and the GPU as they are now. What is known of a lease
  // alone is not set.
  v1::WorkerMeasurements Read();

 private:
  const ReadGpu read_gpu_;
  const std::function<std::string()> read_kernels_;
  platform::Mutex mutex_;
  v1::WorkerMeasurements counted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_METRICS_MEASUREMENTS_H_
