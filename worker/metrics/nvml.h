// Reads a GPU's utilization through NVIDIA's NVML, which is loaded at run time if installed, not
// linked.
#ifndef LENGTHWISE_WORKER_METRICS_NVML_H_
#define LENGTHWISE_WORKER_METRICS_NVML_H_

#include <functional>
#include <optional>
#include <string>

#include "proto/worker_service.pb.h"

namespace lengthwise::worker {

// Returns a reader of the use of the GPU at a PCI bus address, such as "0000:65:00.0", because CUDA
// and NVML number devices differently. Null if NVML is not installed or does not know the GPU.
// `library` is for tests.
//
// The reader returns nullopt if the driver reports nothing. Values that it does not report are 0; a
// MIG partition, for example, has no utilization. Thread-safe, as NVML is.
std::function<std::optional<v1::GpuUse>()> OpenNvml(const std::string& pci_bus_id,
                                                    const char* library = "libnvidia-ml.so.1");

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_METRICS_NVML_H_
