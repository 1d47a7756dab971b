// How a kernel asks its caller for threads.
#ifndef LENGTHWISE_MODELS_KERNELS_PARALLEL_FOR_H_
#define LENGTHWISE_MODELS_KERNELS_PARALLEL_FOR_H_

#include <cstdint>
#include <functional>

namespace lengthwise::kernels {

// What is done for the units [begin, end).
using RangeBody = std::function<void(int64_t begin, int64_t end)>;

// Calls the body with ranges that cover [0, count) once, possibly at the same time on several
// threads, and returns when all are done.
using ParallelFor = std::function<void(int64_t count, const RangeBody& body)>;

// All of it on the calling thread.
inline void Serially(int64_t count, const RangeBody& body) {
  if (count > 0) body(0, count);
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_PARALLEL_FOR_H_
