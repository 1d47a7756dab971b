#include "worker/training/cuda_driver.h"

#include <dlfcn.h>

namespace lengthwise::worker::training {

std::vector<std::string> CudaDeviceNames() {
  // Never closed, because LibTorch needs the driver next.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return {};
  // CUresult is an enum with 0 for success, CUdevice an int.
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get_count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto get_name =
      reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  if (init == nullptr || get_count == nullptr || get == nullptr || get_name == nullptr) return {};
  int count = 0;
  if (init(0) != 0 || get_count(&count) != 0) return {};
  std::vector<std::string> names;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    char name[256] = {};
    const bool known = get(&device, ordinal) == 0 && get_name(name, sizeof(name) - 1, device) == 0;
    names.emplace_back(known ? name : "unnamed GPU");
  }
  return names;
}

std::string CudaPciBusId(int ordinal) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return "";
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto get_bus_id =
      reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetPCIBusId"));
  if (init == nullptr || get == nullptr || get_bus_id == nullptr || init(0) != 0) return "";
  int device = 0;
  char bus_id[64] = {};
  const bool known =
      get(&device, ordinal) == 0 && get_bus_id(bus_id, sizeof(bus_id) - 1, device) == 0;
  return known ? bus_id : "";
}

}  // namespace lengthwise::worker::training
