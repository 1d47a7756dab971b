// Accumulates a worker's metrics since its start.
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

// Spans leases, so counters only grow. Thread-safe; holds its lock only briefly.
class Measurements {
 public:
  using ReadGpu = std::function<std::optional<v1::GpuUse>()>;

  // Every Read calls both functions. `read_gpu` is null for a worker without a GPU. `read_kernels`
  // returns v1::Provenance.kernels of the newest pack.
  explicit Measurements(ReadGpu read_gpu = nullptr,
                        std::function<std::string()> read_kernels = nullptr);

  void CountStep(const PackSession::StepTime& step);
  void CountEvaluation(double seconds);
  void CountCheckpoint(double seconds, int64_t bytes);

  // Returns the counters and the current memory and GPU use. Fields that describe a lease are not
  // set.
  v1::WorkerMeasurements Read();

 private:
  const ReadGpu read_gpu_;
  const std::function<std::string()> read_kernels_;
  platform::Mutex mutex_;
  v1::WorkerMeasurements counted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_METRICS_MEASUREMENTS_H_
