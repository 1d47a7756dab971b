// The Launcher of simt.h for .cu files: enqueues kernels on a CUDA stream.
#ifndef LENGTHWISE_MODELS_KERNELS_STREAM_LAUNCHER_H_
#define LENGTHWISE_MODELS_KERNELS_STREAM_LAUNCHER_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace lengthwise::kernels {

class StreamLauncher {
 public:
  // `stream` is a cudaStream_t; null means the default stream.
  explicit StreamLauncher(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}

  // No-op after a failed launch.
  template <typename... Parameters>
  void Launch(void (*kernel)(Parameters...), int64_t blocks, int threads, int64_t shared_bytes,
              const Parameters&... arguments) {
    if (error_ != cudaSuccess) return;
    if (shared_bytes > kGrantedBytes) {
      error_ = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared_bytes));
      if (error_ != cudaSuccess) {
        cudaGetLastError();  // so that nobody else reports it
        return;
      }
    }
    kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
             static_cast<size_t>(shared_bytes), stream_>>>(arguments...);
    error_ = cudaGetLastError();
  }

  // CUDA's error message of the first failed launch, or null.
  const char* error() const { return error_ == cudaSuccess ? nullptr : cudaGetErrorString(error_); }

 private:
  // Shared memory that every kernel may use without asking for more.
  static constexpr int64_t kGrantedBytes = 48 * 1024;

  cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_STREAM_LAUNCHER_H_
