// LibTorch's threads for kernels that know nothing of LibTorch.
#ifndef LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_
#define LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_

#include <cstdint>

#include "ATen/Parallel.h"
#include "models/kernels/parallel_for.h"

namespace lengthwise::models {

// A kernels::ParallelFor.
inline void OnThreads(int64_t count, const kernels::RangeBody& body) {
  at::parallel_for(0, count, /*grain_size=*/1, body);
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_
