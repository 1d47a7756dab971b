// Threads of kernels: the caller passes in a parallel loop.
#ifndef LENGTHWISE_MODELS_KERNELS_PARALLEL_FOR_H_
#define LENGTHWISE_MODELS_KERNELS_PARALLEL_FOR_H_

#include <cstdint>
#include <functional>

namespace lengthwise::kernels {

// Processes units [begin, end).
using RangeBody = std::function<void(int64_t begin, int64_t end)>;

// Calls `body` with ranges that cover [0, count) exactly once, possibly concurrently, and returns
// when all are done.
using ParallelFor = std::function<void(int64_t count, const RangeBody& body)>;

// ParallelFor on the calling thread alone.
inline void Serially(int64_t count, const RangeBody& body) {
  if (count > 0) body(0, count);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_PARALLEL_FOR_H_
