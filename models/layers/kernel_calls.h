// Calls from LibTorch into our kernels: tensors as kernels see them, threads and streams.
#ifndef LENGTHWISE_MODELS_LAYERS_KERNEL_CALLS_H_
#define LENGTHWISE_MODELS_LAYERS_KERNEL_CALLS_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "c10/core/Device.h"
#include "c10/core/DeviceGuard.h"
#include "c10/core/Stream.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "c10/util/Exception.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/cuda_devices.h"
#include "models/kernels/parallel_for.h"
#include "models/kernels/row_chunks.h"
#include "models/layers/kernel_choice.h"

namespace lengthwise::models {

// Returns `parameter` [P, ...] itself if each member's numbers are contiguous, as in views of an
// arena; else a contiguous copy.
inline at::Tensor ByMember(const at::Tensor& parameter) {
  return parameter.select(0, 0).is_contiguous() ? parameter : parameter.contiguous();
}

// [P, B, n, d] as P times B n rows.
inline kernels::RowsShape RowsOf(const at::Tensor& features) {
  return {.members = features.size(0),
          .rows = features.size(1) * features.size(2),
          .width = features.size(3)};
}

// Returns true if the thread's choice for `operation` is our kernel and kernels run where `tensor`
// is. Callers check separately whether the kernel takes the tensor.
inline bool HasKernel(FusedOperation operation, const at::Tensor& tensor) {
  return UsesFusedKernel(operation) &&
         (tensor.is_cpu() || (tensor.is_cuda() && kernels::RunsCudaKernels(tensor.get_device())));
}

// Returns true if our kernels have a version for this type.
inline bool HasKernelType(at::ScalarType type) {
  return type == at::kFloat || type == at::kBFloat16;
}

// Calls body(float()) or body(kernels::BFloat16()), depending on `type`, and returns its result.
template <typename Body>
auto WithKernelType(at::ScalarType type, const Body& body) {
  return type == at::kBFloat16 ? body(kernels::BFloat16()) : body(float());
}

inline const kernels::BFloat16* BFloat16Of(const at::Tensor& tensor) {
  return static_cast<const kernels::BFloat16*>(tensor.const_data_ptr());
}
inline kernels::BFloat16* MutableBFloat16Of(at::Tensor& tensor) {
  return static_cast<kernels::BFloat16*>(tensor.mutable_data_ptr());
}

// Returns `tensor` as the kernels on tensor cores read it: bfloat16, contiguous, from a multiple of
// 16 bytes on.
at::Tensor Rounded(const at::Tensor& tensor);

// Sets the number of threads of the calling thread's loops, and leaves LibTorch and MKL one. They
// cut their work by the number of threads, at places that change the order of sums and which
// numbers a vector instruction computes, so their results depend on it. OnThreads' do not.
void SetThreads(int threads);

// A kernels::ParallelFor on as many threads as SetThreads said, at first one; within another such
// loop, on the calling thread. Idle threads take parts of the remaining work, large parts first,
// because shared cores are not equally fast.
void OnThreads(int64_t count, const kernels::RangeBody& body);

// Makes `device` current and calls launch(stream) with LibTorch's current stream on it, a
// cudaStream_t as void*. `launch` returns null, or the reason why a kernel could not be launched,
// which is thrown as c10::Error. It takes `auto* stream`: builds without nvcc compile no launch.
template <typename Launch>
void OnStream(const c10::Device& device, [[maybe_unused]] const Launch& launch) {
  const c10::DeviceGuard guard(device);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const char* error = "built without nvcc";
  if constexpr (kernels::HasCudaKernels()) error = launch(stream.native_handle());
  TORCH_CHECK(error == nullptr, "a CUDA kernel could not be launched: ", error);
}

}  // namespace lengthwise::models

#endif  // LENGTHWISE_MODELS_LAYERS_KERNEL_CALLS_H_
