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
  // The GPU at a PCI bus address, such as "0000:65:00.0"; CUDA's numbers are not NVML's. Null where
  // there is no NVML, or no such GPU for it. `library` is for tests.
  static std::unique_ptr<Nvml> Open(const std::string& pci_bus_id,
                                    const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Nothing where the driver does not say. What it does not say of a part is 0 (a share of a GPU
  // has no utilization).
  std::optional<v1::GpuUse> Read();

 private:
  struct Functions;
  Nvml();

  std::unique_ptr<Functions> functions_;
  void* device_ = nullptr;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_METRICS_NVML_H_
