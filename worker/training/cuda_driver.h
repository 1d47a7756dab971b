// Asks NVIDIA's driver what GPUs there are, without linking or loading anything of CUDA where there
// is no driver.
#ifndef LENGTHWISE_WORKER_TRAINING_CUDA_DRIVER_H_
#define LENGTHWISE_WORKER_TRAINING_CUDA_DRIVER_H_

#include <string>
#include <vector>

namespace lengthwise::worker::training {

// Names of the GPUs that this process may use, in CUDA's order; empty where there are none, or no
// driver.
std::vector<std::string> CudaDeviceNames();

// PCI bus address of the GPU with this index in that order, such as "0000:65:00.0". Empty if there
// is no such GPU.
std::string CudaPciBusId(int ordinal);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_CUDA_DRIVER_H_
