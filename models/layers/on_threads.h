// LibTorch's threads for kernels that know nothing of LibTorch.
#ifndef LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_
#define LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "ATen/Parallel.h"
#include "models/kernels/parallel_for.h"

namespace lengthwise::models {

// A kernels::ParallelFor. Each thread takes a part of what is left whenever it has nothing to do,
// large ones first, because cores that others use too are not equally fast.
inline void OnThreads(int64_t count, const kernels::RangeBody& body) {
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (threads == 1 || count == 1) {
    kernels::Serially(count, body);
    return;
  }
  std::atomic<int64_t> next = 0;
  at::parallel_for(0, threads, /*grain_size=*/1, [&](int64_t, int64_t) {
    int64_t begin = next.load();
    while (begin < count) {
      const int64_t end = begin + std::max<int64_t>(1, (count - begin) / (2 * threads));
      if (!next.compare_exchange_weak(begin, end)) continue;
      body(begin, end);
      begin = next.load();
    }
  });
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_ON_THREADS_H_
