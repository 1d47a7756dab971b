#include "worker/metrics/measurements.h"

#include <utility>

#include "monitoring/samples.h"
#include "platform/process_usage.h"

namespace lengthwise::worker {

Measurements::Measurements(ReadGpu read_gpu, std::function<std::string()> read_kernels)
    : read_gpu_(std::move(read_gpu)), read_kernels_(std::move(read_kernels)) {
  // Buckets range from a tiny model on a GPU to a large pack on a CPU.
  *counted_.mutable_step_seconds() = monitoring::EmptyHistogram(
      {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10});
}

void Measurements::CountStep(const PackSession::StepTime& step) {
  platform::MutexLock lock(mutex_);
  counted_.set_steps(counted_.steps() + 1);
  counted_.set_model_steps(counted_.model_steps() + step.models);
  counted_.set_data_wait_seconds(counted_.data_wait_seconds() + step.data_wait_seconds);
  monitoring::Observe(step.seconds, *counted_.mutable_step_seconds());
}

void Measurements::CountEvaluation(double seconds) {
  platform::MutexLock lock(mutex_);
  counted_.set_evaluation_seconds(counted_.evaluation_seconds() + seconds);
}

void Measurements::CountCheckpoint(double seconds, int64_t bytes) {
  platform::MutexLock lock(mutex_);
  counted_.set_checkpoints(counted_.checkpoints() + 1);
  counted_.set_checkpoint_seconds(counted_.checkpoint_seconds() + seconds);
  counted_.set_checkpoint_bytes(counted_.checkpoint_bytes() + bytes);
}

v1::WorkerMeasurements Measurements::Read() {
  // Called without the lock, because a driver may be slow.
  const std::optional<v1::GpuUse> gpu = read_gpu_ ? read_gpu_() : std::nullopt;
  const std::string kernels = read_kernels_ ? read_kernels_() : "";
  const int64_t resident = platform::ReadProcessUsage().resident_bytes;
  platform::MutexLock lock(mutex_);
  v1::WorkerMeasurements measurements = counted_;
  measurements.set_resident_memory_bytes(resident);
  if (gpu.has_value()) *measurements.mutable_gpu() = *gpu;
  measurements.set_kernels(kernels);
  return measurements;
}

}  // namespace lengthwise::worker
