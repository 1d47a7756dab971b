// Lists GPUs by asking NVIDIA's driver, without linking CUDA. Loads nothing if there is no driver.
#ifndef LENGTHWISE_WORKER_TRAINING_CUDA_DRIVER_H_
#define LENGTHWISE_WORKER_TRAINING_CUDA_DRIVER_H_

#include <string>
#include <vector>

namespace lengthwise::worker::training {

// Returns the names of the GPUs that this process may use, in CUDA's order. Empty without GPUs or
// driver.
std::vector<std::string> CudaDeviceNames();

// Returns the PCI bus address of the GPU with this index in that order, such as "0000:65:00.0".
// Empty if there is no such GPU.
std::string CudaPciBusId(int ordinal);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_CUDA_DRIVER_H_
