// Whether a GPU can run the CUDA kernels of this folder, without linking CUDA.
#ifndef LENGTHWISE_MODELS_KERNELS_CUDA_CAPABILITY_H_
#define LENGTHWISE_MODELS_KERNELS_CUDA_CAPABILITY_H_

namespace lengthwise::kernels {

// The kernels are compiled for compute capability 8.0 and newer (bazel/cuda_library.bzl). On an
// older device no machine code matches, and a launch would fail.
inline constexpr int kLeastCudaCapability = 80;

// Ten times the major version plus the minor one (90 for an H100) of the GPU with this number in
// CUDA's order; 0 if there is no such GPU or no driver. Asks the driver once for each device.
// Thread-safe.
int CudaCapability(int ordinal);

// False in builds without nvcc. All functions of *_cuda.h then return an error.
bool HasCudaKernels();

// Returns true if the device runs the CUDA kernels of this build.
inline bool RunsCudaKernels(int ordinal) {
  return HasCudaKernels() && CudaCapability(ordinal) >= kLeastCudaCapability;
}

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_CUDA_CAPABILITY_H_
