#include "models/kernels/cuda_capability.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace lengthwise::kernels {
namespace {

// CUdevice_attribute.
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

int AskDriver(int ordinal) {
  // The driver stays loaded: CUDA's runtime uses it, too.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 0;
  // CUresult is an enum whose 0 is success, CUdevice an int.
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto get_attribute =
      reinterpret_cast<int (*)(int*, int, int)>(dlsym(driver, "cuDeviceGetAttribute"));
  if (init == nullptr || get == nullptr || get_attribute == nullptr || init(0) != 0) return 0;
  int device = 0, major = 0, minor = 0;
  const bool known = get(&device, ordinal) == 0 &&
                     get_attribute(&major, kCapabilityMajor, device) == 0 &&
                     get_attribute(&minor, kCapabilityMinor, device) == 0;
  return known ? 10 * major + minor : 0;
}

}  // namespace

bool HasCudaKernels() {
#ifdef LENGTHWISE_WITH_NVCC
  return true;
#else
  return false;
#endif
}

int CudaCapability(int ordinal) {
  // One more than the capability, so that the zeros of a static array mean "not asked yet".
  static std::array<std::atomic<int>, 64> known;
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= known.size()) return 0;
  std::atomic<int>& entry = known[static_cast<size_t>(ordinal)];
  if (entry == 0) entry = AskDriver(ordinal) + 1;
  return entry - 1;
}

}  // namespace lengthwise::kernels
