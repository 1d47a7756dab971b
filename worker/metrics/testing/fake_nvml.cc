// Fake driver for tests with one GPU at 0000:65:00.0. It has 80 GiB, and each query reports 1 GiB
// more in use. Utilization is available in the first query only, as it is missing on a MIG
// partition.
#include <cstring>

namespace {

int users = 0;
int looks = 0;
int device = 0;
constexpr unsigned long long kGib = 1ull << 30;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++users;
  return 0;
}
int nvmlShutdown() {
  --users;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** handle) {
  if (std::strcmp(bus_id, "0000:65:00.0") != 0) return 6;  // NVML_ERROR_NOT_FOUND
  *handle = &device;
  return 0;
}
struct Memory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  if (handle != &device) return 2;  // NVML_ERROR_INVALID_ARGUMENT
  ++looks;
  *memory = {80 * kGib, (80 - looks) * kGib, looks * kGib};
  return 0;
}
struct Utilization {
  unsigned int gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void* handle, Utilization* utilization) {
  if (looks > 1) return 3;  // NVML_ERROR_NOT_SUPPORTED
  *utilization = {.gpu = 37, .memory = 5};
  return 0;
}
// Number of initializations without a shutdown yet.
int FakeNvmlUsers() { return users; }
}
