// Records LibTorch's operations and our own kernels as CUDA graphs.
#ifndef LENGTHWISE_WORKER_TRAINING_CUDA_GRAPH_H_
#define LENGTHWISE_WORKER_TRAINING_CUDA_GRAPH_H_

#include <memory>

#include "c10/core/Device.h"
#include "worker/training/device_graph.h"

namespace lengthwise::worker::training {

// Creates a pool of graphs that record the current stream of `device`, which must not be the
// default stream. One thread and LibTorch's backward threads may submit work to it. Memory
// allocated during recording belongs to the pool: the rest of the program cannot use it until the
// pool and its graphs are destroyed. Recorded work must not draw random numbers from the device's
// generator. Null if the program was built without CUDA's headers, which come with nvcc.
std::unique_ptr<GraphPool> MakeCudaGraphPool(const c10::Device& device);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_CUDA_GRAPH_H_
