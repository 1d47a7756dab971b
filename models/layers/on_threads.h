// Runs kernels that do not depend on LibTorch on LibTorch's threads.
#ifndef LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_
#define LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"

namespace lengthwise::models {

// A kernels::ParallelFor on at::get_num_threads() threads; within another such loop, on the calling
// thread. Idle threads take parts of the remaining work, large parts first, because shared cores
// are not equally fast.
void OnThreads(int64_t count, const kernels::RangeBody& body);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_
