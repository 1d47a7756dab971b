// Determines whether a test can use a GPU.
#ifndef LENGTHWISE_MODELS_LAYERS_TESTING_CUDA_FOR_TESTS_H_
#define LENGTHWISE_MODELS_LAYERS_TESTING_CUDA_FOR_TESTS_H_

#include <dlfcn.h>

#include "ATen/Context.h"
#include "ATen/detail/CUDAHooksInterface.h"
#include "gtest/gtest.h"
#include "models/kernels/cuda_devices.h"

namespace lengthwise::models {

// LibTorch's CUDA library, which registers itself. Loaded before any test: LibTorch looks for it
// once, at its first operation.
inline void* const kCudaLibrary = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);

// Without a driver there is no device.
inline bool HasCudaDevice() {
  return kCudaLibrary != nullptr && at::hasCUDA() && at::detail::getCUDAHooks().deviceCount() > 0;
}

}  // namespace lengthwise::models

#define LENGTHWISE_SKIP_WITHOUT_CUDA()                                                         \
  if (!::lengthwise::kernels::HasCudaKernels()) GTEST_SKIP() << "skipped: built without nvcc"; \
  if (!::lengthwise::models::HasCudaDevice()) GTEST_SKIP() << "skipped: no CUDA device"

#endif  // LENGTHWISE_MODELS_LAYERS_TESTING_CUDA_FOR_TESTS_H_
