// What NVIDIA's driver says of the GPUs, and whether they run the CUDA kernels of this folder.
// Links no CUDA, and loads nothing if there is no driver.
#ifndef LENGTHWISE_MODELS_KERNELS_CUDA_DEVICES_H_
#define LENGTHWISE_MODELS_KERNELS_CUDA_DEVICES_H_

#include <string>
#include <vector>

namespace lengthwise::kernels {

// The kernels are compiled for compute capability 8.0 and newer (bazel/cuda_library.bzl). On an
// older device no machine code matches, and a launch would fail.
inline constexpr int kLeastCudaCapability = 80;

// Ten times the major version plus the minor one (90 for an H100) of the GPU with this number in
// CUDA's order; 0 if there is no such GPU or no driver. Asks the driver once for each device.
// Thread-safe.
int CudaCapability(int ordinal);

// False in builds without nvcc, in which the functions of *_cuda.h are declared alone.
constexpr bool HasCudaKernels() {
#ifdef LENGTHWISE_WITH_NVCC
  return true;
#else
  return false;
#endif
}

// Returns true if the device runs the CUDA kernels of this build.
inline bool RunsCudaKernels(int ordinal) {
  return HasCudaKernels() && CudaCapability(ordinal) >= kLeastCudaCapability;
}

// Returns the names of the GPUs that this process may use, in CUDA's order. Empty without GPUs or
// driver.
std::vector<std::string> CudaDeviceNames();

// Returns the PCI bus address of the GPU with this index in that order, such as "0000:65:00.0".
// Empty if there is no such GPU.
std::string CudaPciBusId(int ordinal);

}  // namespace lengthwise::kernels

#endif  // LENGTHWISE_MODELS_KERNELS_CUDA_DEVICES_H_
