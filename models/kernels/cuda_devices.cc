#include "models/kernels/cuda_devices.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace lengthwise::kernels {
namespace {

// CUdevice_attribute.
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;

// Calls a function of NVIDIA's driver. Returns false if there is no such function or it fails.
// CUresult is an enum whose 0 is success, CUdevice an int.
template <typename... Arguments>
bool Ask(const char* name, Arguments... arguments) {
  // Never closed, because LibTorch and CUDA's runtime need the driver, too.
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(driver, name));
  return function != nullptr && function(arguments...) == 0;
}

int AskCapability(int ordinal) {
  int device = 0, major = 0, minor = 0;
  const bool known = Ask("cuInit", 0U) && Ask("cuDeviceGet", &device, ordinal) &&
                     Ask("cuDeviceGetAttribute", &major, kCapabilityMajor, device) &&
                     Ask("cuDeviceGetAttribute", &minor, kCapabilityMinor, device);
  return known ? 10 * major + minor : 0;
}

}  // namespace

int CudaCapability(int ordinal) {
  // One more than the capability, so that the zeros of a static array mean "not asked yet".
  static std::array<std::atomic<int>, 64> known;
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= known.size()) return 0;
  std::atomic<int>& entry = known[static_cast<size_t>(ordinal)];
  if (entry == 0) entry = AskCapability(ordinal) + 1;
  return entry - 1;
}

std::vector<std::string> CudaDeviceNames() {
  int count = 0;
  if (!Ask("cuInit", 0U) || !Ask("cuDeviceGetCount", &count)) return {};
  std::vector<std::string> names;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    std::array<char, 256> name = {};
    const bool known =
        Ask("cuDeviceGet", &device, ordinal) &&
        Ask("cuDeviceGetName", name.data(), static_cast<int>(name.size() - 1), device);
    names.emplace_back(known ? name.data() : "unnamed GPU");
  }
  return names;
}

std::string CudaPciBusId(int ordinal) {
  int device = 0;
  std::array<char, 64> bus_id = {};
  const bool known =
      Ask("cuInit", 0U) && Ask("cuDeviceGet", &device, ordinal) &&
      Ask("cuDeviceGetPCIBusId", bus_id.data(), static_cast<int>(bus_id.size() - 1), device);
  return known ? bus_id.data() : "";
}

}  // namespace lengthwise::kernels
