// Fakes the part of NVIDIA's driver that models/kernels/cuda_devices.cc uses, for a machine with
// one GPU.
#include <cstring>

extern "C" {

int cuInit(unsigned) { return 0; }

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

int cuDeviceGet(int* device, int) {
  *device = 0;
  return 0;
}

int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Pretended GPU", static_cast<size_t>(size));
  return 0;
}
}
