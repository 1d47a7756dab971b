// A driver with two GPUs: 0 has compute capability 7.5, 1 has 9.0.
extern "C" {

int cuInit(unsigned) { return 0; }

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < 2 ? 0 : 101;  // CUDA_ERROR_INVALID_DEVICE
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const bool major = attribute == 75;
  *value = device == 0 ? (major ? 7 : 5) : (major ? 9 : 0);
  return 0;
}
}
