// --device of the benchmarks that time single operations.
#ifndef LENGTHWISE_BENCHMARKS_BENCHMARK_DEVICE_H_
#define LENGTHWISE_BENCHMARKS_BENCHMARK_DEVICE_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ATen/Context.h"
#include "ATen/detail/CUDAHooksInterface.h"
#include "c10/core/Device.h"
#include "c10/core/impl/VirtualGuardImpl.h"

namespace lengthwise::benchmarks {

inline bool HasCudaDevice() {
  return dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr && at::hasCUDA() &&
         at::detail::getCUDAHooks().deviceCount() > 0;
}

// Removes `--device=cpu` or `--device=cuda` from the arguments and returns the device. Default: the
// CPU. Prints "skipped: no CUDA device" and exits with 0 if there is none. Exits with 2 for another
// name.
inline at::Device TakeDevice(int& argc, char** argv) {
  const std::string flag = "--device=";
  std::string name = "cpu";
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.compare(0, flag.size(), flag) == 0) {
      name = argument.substr(flag.size());
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  if (name == "cpu") return at::kCPU;
  if (name != "cuda") {
    std::fprintf(stderr, "--device must be cpu or cuda, not \"%s\"\n", name.c_str());
    std::exit(2);
  }
  if (!HasCudaDevice()) {
    std::puts("skipped: no CUDA device");
    std::exit(0);
  }
  return at::Device(at::kCUDA, 0);
}

// Waits until the device has finished all work started on it.
inline void WaitFor(const at::Device& device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

}  // namespace lengthwise::benchmarks

#endif  // LENGTHWISE_BENCHMARKS_BENCHMARK_DEVICE_H_
