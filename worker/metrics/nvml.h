// Reads a GPU's utilization through NVIDIA's NVML, which is loaded at run time if installed, not
// linked.
#ifndef LENGTHWISE_WORKER_METRICS_NVML_H_
#define LENGTHWISE_WORKER_METRICS_NVML_H_

#include <memory>
#include <optional>
#include <string>

#include "proto/worker_service.pb.h"

namespace lengthwise::worker {

// Thread-safe, as NVML is.
class Nvml {
 public:
  // Opens the GPU at a PCI bus address, such as "0000:65:00.0", because CUDA and NVML number
  // devices differently. Null if NVML is not installed or does not know the GPU. `library` is for
  // tests.
  static std::unique_ptr<Nvml> Open(const std::string& pci_bus_id,
                                    const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Returns nullopt if the driver reports nothing. Values that it does not report are 0; a MIG
  // partition, for example, has no utilization.
  std::optional<v1::GpuUse> Read();

 private:
  struct Functions;
  Nvml();

  std::unique_ptr<Functions> functions_;
  void* device_ = nullptr;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_METRICS_NVML_H_
