// LibTorch's threads for kernels that know nothing of LibTorch.
#ifndef LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_
#define LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_

#include <cstdint>

#include "models/kernels/parallel_for.h"

namespace lengthwise::models {

// A kernels::ParallelFor on as many threads as at::get_num_threads() says; within another such loop
// on the calling thread. Each thread takes a part of what is left whenever it has nothing to do,
// large ones first, because cores that others use too are not equally fast.
void OnThreads(int64_t count, const kernels::RangeBody& body);

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_
