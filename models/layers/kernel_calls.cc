#include "models/layers/kernel_calls.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "ATen/Parallel.h"

// Without OpenMP, at::parallel_for is a sequential loop.
#ifndef _OPENMP
#error "compile this file with -fopenmp"
#endif

namespace lengthwise::models {

void OnThreads(int64_t count, const kernels::RangeBody& body) {
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (threads == 1 || count == 1) {
    kernels::Serially(count, body);
    return;
  }
  // Which thread takes which range changes no result: a kernel's unit of work writes its own
  // numbers, and partial sums are added in a fixed order (kernels/row_chunks.h).
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
