// The compute capability of a GPU, from NVIDIA's driver, without linking CUDA.
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

// Returns true if the device runs the CUDA kernels of this folder.
inline bool RunsCudaKernels(int ordinal) { return CudaCapability(ordinal) >= kLeastCudaCapability; }

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_CUDA_CAPABILITY_H_
