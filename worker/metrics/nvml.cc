#include "worker/metrics/nvml.h"

#include <dlfcn.h>

#include <cstdint>
#include <memory>

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

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

class Nvml {
 public:
  Nvml() = default;
  ~Nvml() {
    if (initialized_) shutdown_();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool Open(void* library, const std::string& pci_bus_id) {
    initialized_ = Find(library, "nvmlInit_v2", init_) &&
                   Find(library, "nvmlShutdown", shutdown_) &&
                   Find(library, "nvmlDeviceGetHandleByPciBusId_v2", get_handle_) &&
                   Find(library, "nvmlDeviceGetMemoryInfo", get_memory_) &&
                   Find(library, "nvmlDeviceGetUtilizationRates", get_utilization_) && init_() == 0;
    return initialized_ && get_handle_(pci_bus_id.c_str(), &device_) == 0;
  }

  std::optional<v1::GpuUse> Read() const {
    Memory memory = {};
    if (get_memory_(device_, &memory) != 0) return std::nullopt;
    v1::GpuUse use;
    use.set_memory_used_bytes(static_cast<int64_t>(memory.used));
    use.set_memory_total_bytes(static_cast<int64_t>(memory.total));
    Utilization utilization = {};
    if (get_utilization_(device_, &utilization) == 0) {
      use.set_utilization(utilization.gpu / 100.0);
    }
    return use;
  }

 private:
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*get_handle_)(const char*, void**) = nullptr;
  int (*get_memory_)(void*, Memory*) = nullptr;
  int (*get_utilization_)(void*, Utilization*) = nullptr;
  bool initialized_ = false;
  void* device_ = nullptr;
};

}  // namespace

std::function<std::optional<v1::GpuUse>()> OpenNvml(const std::string& pci_bus_id,
                                                    const char* library) {
  // Never closed, because other code in the process may use the library.
  void* const handle = dlopen(library, RTLD_NOW);
  const auto nvml = std::make_shared<Nvml>();
  if (handle == nullptr || !nvml->Open(handle, pci_bus_id)) return nullptr;
  return [nvml] { return nvml->Read(); };
}

}  // namespace lengthwise::worker
