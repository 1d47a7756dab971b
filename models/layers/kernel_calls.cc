#include "models/layers/kernel_calls.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#include "ATen/Parallel.h"

// Without OpenMP, a parallel region is a sequential block.
#ifndef _OPENMP
#error "compile this file with -fopenmp"
#endif

namespace lengthwise::models {
namespace {

thread_local int loop_threads = 1;

}  // namespace

at::Tensor Rounded(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.to(at::kBFloat16).contiguous();
  return reinterpret_cast<uintptr_t>(whole.const_data_ptr()) % 16 == 0 ? whole : whole.clone();
}

void SetThreads(int threads) {
  loop_threads = threads;
  if (at::get_num_threads() != 1) at::set_num_threads(1);
}

void OnThreads(int64_t count, const kernels::RangeBody& body) {
  // Always the whole team: OpenMP ends threads that a smaller one does not need.
  const int threads = at::in_parallel_region() ? 1 : loop_threads;
  if (threads == 1 || count <= 1) {
    kernels::Serially(count, body);
    return;
  }
  // Which thread takes which range changes no result: a kernel's unit of work writes its own
  // numbers, and partial sums are added in a fixed order (kernels/row_chunks.h).
  std::atomic<int64_t> next = 0;
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr failure;
#pragma omp parallel num_threads(threads)
  try {
    int64_t begin = next.load();
    while (begin < count) {
      const int64_t end = begin + std::max<int64_t>(1, (count - begin) / (2 * threads));
      if (!next.compare_exchange_weak(begin, end)) continue;
      body(begin, end);
      begin = next.load();
    }
  } catch (...) {
    if (!failed.test_and_set()) failure = std::current_exception();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace lengthwise::models
