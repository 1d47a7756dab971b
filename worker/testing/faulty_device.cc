// Fakes an accelerator that falls off in a step of training, for tests on machines without one.
// Preloaded into a worker (LD_PRELOAD), it takes the place of an operator that every step calls
// once for each member of the pack. From call $LENGTHWISE_TEST_FAULT_AT on it throws what LibTorch
// throws then.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/stack_ops.h"
#include "c10/util/Exception.h"

namespace {

at::Tensor Stack(at::TensorList tensors, int64_t dim) {
  static const int64_t fails_at = std::atoll(std::getenv("LENGTHWISE_TEST_FAULT_AT"));
  static std::atomic<int64_t> calls = 0;
  constexpr int32_t kLaunchFailure = 719;  // cudaErrorLaunchFailure
  if (++calls >= fails_at) {
    throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, kLaunchFailure,
                                "CUDA error: unspecified launch failure");
  }
  std::vector<at::Tensor> rows;
  for (const at::Tensor& tensor : tensors) rows.push_back(tensor.unsqueeze(dim));
  return at::cat(rows, dim);
}

}  // namespace

at::Tensor at::_ops::stack::call(at::TensorList tensors, int64_t dim) {
  return Stack(tensors, dim);
}
