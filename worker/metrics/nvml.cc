#include "worker/metrics/nvml.h"

#include <dlfcn.h>

#include <cstdint>

namespace lengthwise::worker {
namespace {

// Declarations from nvml.h, whose ABI is stable: nvmlReturn_t is an enum with 0 for success,
// nvmlDevice_t a pointer.
struct Memory {
  unsigned long long total, free, used;  // NOLINT(google-runtime-int): as NVML declares them
};
struct Utilization {
  unsigned int gpu, memory;  // per cent
};

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*get_handle)(const char*, void**) = nullptr;
  int (*get_memory)(void*, Memory*) = nullptr;
  int (*get_utilization)(void*, Utilization*) = nullptr;

  template <typename Function>
  static bool Find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }
  bool FindAll(void* library) {
    return Find(library, "nvmlInit_v2", init) && Find(library, "nvmlShutdown", shutdown) &&
           Find(library, "nvmlDeviceGetHandleByPciBusId_v2", get_handle) &&
           Find(library, "nvmlDeviceGetMemoryInfo", get_memory) &&
           Find(library, "nvmlDeviceGetUtilizationRates", get_utilization);
  }
};

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {}

std::unique_ptr<Nvml> Nvml::Open(const std::string& pci_bus_id, const char* library) {
  // Never closed, because other code in the process may use the library.
  void* handle = dlopen(library, RTLD_NOW);
  if (handle == nullptr) return nullptr;
  auto functions = std::make_unique<Functions>();
  if (!functions->FindAll(handle) || functions->init() != 0) return nullptr;
  std::unique_ptr<Nvml> nvml(new Nvml);
  nvml->functions_ = std::move(functions);  // from here on, the destructor shuts down
  if (nvml->functions_->get_handle(pci_bus_id.c_str(), &nvml->device_) != 0) return nullptr;
  return nvml;
}

Nvml::~Nvml() {
  if (functions_->shutdown != nullptr) functions_->shutdown();
}

std::optional<v1::GpuUse> Nvml::Read() {
  Memory memory = {};
  if (functions_->get_memory(device_, &memory) != 0) return std::nullopt;
  v1::GpuUse use;
  use.set_memory_used_bytes(static_cast<int64_t>(memory.used));
  use.set_memory_total_bytes(static_cast<int64_t>(memory.total));
  Utilization utilization = {};
  if (functions_->get_utilization(device_, &utilization) == 0) {
    use.set_utilization(utilization.gpu / 100.0);
  }
  return use;
}

}  // namespace lengthwise::worker
