// Replaces cuda_graph.cc in a build without CUDA's headers.
#include "worker/training/cuda_graph.h"

namespace lengthwise::worker::training {

std::unique_ptr<GraphPool> MakeCudaGraphPool(const c10::Device& /*device*/) { return nullptr; }

}  // namespace lengthwise::worker::training
