// CUDA graphs of LibTorch's operations and our own kernels.
#ifndef LENGTHWISE_WORKER_TRAINING_CUDA_GRAPH_H_
#define LENGTHWISE_WORKER_TRAINING_CUDA_GRAPH_H_

#include <memory>

#include "c10/core/Device.h"
#include "worker/training/device_graph.h"

namespace lengthwise::worker::training {

// Graphs of what is put on the current stream of `device`, which must not be the default one, by
// one thread and LibTorch's backward threads. What is allocated while a graph is recorded stays the
// pool's: no other part of the program gets that memory before the pool and its graphs are gone.
// Random numbers of the device's own generator must not be drawn in them. Null where the program
// was built without CUDA's headers, which come with nvcc.
std::unique_ptr<GraphPool> MakeCudaGraphPool(const c10::Device& device);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_CUDA_GRAPH_H_
