#include "worker/training/device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Context.h"
#include "ATen/Parallel.h"
#include "ATen/Version.h"
#include "ATen/detail/CUDAHooksInterface.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "c10/core/CachingDeviceAllocator.h"
#include "c10/core/Device.h"
#include "c10/core/impl/VirtualGuardImpl.h"
#include "c10/util/Exception.h"
#include "models/kernels/cuda_devices.h"
#include "models/layers/kernel_calls.h"
#include "platform/usable_cpus.h"
#include "platform/version.h"
#include "torch/headeronly/version.h"
#include "worker/training/cuda_graph.h"

namespace lengthwise::worker::training {
namespace {

// Returns the newest instruction set of this machine with a reproducible mode in MKL. STRICT gives
// the same bits for any alignment. What it promises for numbers of threads does not matter: MKL has
// one (models/layers/kernel_calls.h).
const char* ReproducibleMode() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return "AVX512,STRICT";
  }
  if (__builtin_cpu_supports("avx2")) return "AVX2,STRICT";
  return "COMPATIBLE";
}

void SetProcessUp() {
  static std::once_flag once;
  std::call_once(once, [] {
    // MKL and cuBLAS read these variables on first use.
    setenv("MKL_CBWR", ReproducibleMode(), /*overwrite=*/0);
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
    at::set_num_interop_threads(1);
    // Operations without a deterministic kernel warn instead of failing.
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
    // Filling every new tensor would cost time, and no uninitialized memory is read.
    at::globalContext().setDeterministicFillUninitializedMemory(false);
  });
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

v1::Provenance CpuProvenance(int threads) {
  v1::Provenance provenance;
  provenance.set_program_version(platform::kVersion);
  provenance.set_source_revision(platform::kSourceRevision);
  provenance.set_libtorch_version(TORCH_VERSION);
  provenance.set_device("cpu");
  provenance.set_instruction_set(at::get_cpu_capability());
  provenance.set_threads(threads);
  provenance.set_host(HostName());
  return provenance;
}

absl::Status NoSuchDevice(absl::string_view name, const std::vector<std::string>& gpus) {
  std::vector<std::string> there = {"cpu"};
  for (size_t i = 0; i < gpus.size(); ++i)
    there.push_back(absl::StrCat("cuda:", i, " (", gpus[i], ")"));
  return absl::InvalidArgumentError(absl::StrCat(
      "no device \"", name, "\" on this machine; available: ", absl::StrJoin(there, ", "),
      "; \"auto\" selects the first GPU, or else the CPU"));
}

// Loads LibTorch's CUDA library, which registers itself. This program's search path finds it beside
// libtorch_cpu.so.
absl::Status LoadCuda() {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is a GPU, but LibTorch's CUDA library cannot be loaded (", dlerror(),
                     "); install LibTorch with CUDA, or use the device \"cpu\""));
  }
  if (!at::hasCUDA()) {
    return absl::InvalidArgumentError(
        "there is a GPU, but LibTorch cannot use it: its driver may be too old; use the device "
        "\"cpu\"");
  }
  return absl::OkStatus();
}

// Returns zeros if the allocator does not support the queries.
DeviceMemory MeasureMemory(const c10::Device& place) try {
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(place.type());
  const auto stats = allocator->getDeviceStats(place.index());
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const int64_t held = stats.reserved_bytes[kAll].current;
  const auto free = static_cast<int64_t>(allocator->getMemoryInfo(place.index()).first);
  return {.peak = stats.allocated_bytes[kAll].peak, .usable = held + free};
} catch (const c10::Error&) {
  return {};
}

}  // namespace

c10::Device PlaceOf(const Device& device) {
  return device.cuda ? c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device.index))
                     : c10::Device(c10::kCPU);
}

absl::StatusOr<Device> OpenDevice(absl::string_view name, int32_t threads) {
  Device device;
  device.threads = threads > 0 ? threads : platform::CountUsableCpus().count;
  SetProcessUp();
  device.provenance = CpuProvenance(device.threads);
  if (name == "cpu") return device;

  const std::vector<std::string> gpus = kernels::CudaDeviceNames();
  if (name == "auto") {
    if (gpus.empty()) return device;
  } else {
    absl::string_view index = name;
    const bool is_cuda = absl::ConsumePrefix(&index, "cuda");
    const bool has_index = index.empty() || (absl::ConsumePrefix(&index, ":") &&
                                             absl::SimpleAtoi(index, &device.index));
    if (!is_cuda || !has_index || device.index < 0 ||
        static_cast<size_t>(device.index) >= gpus.size()) {
      return NoSuchDevice(name, gpus);
    }
  }
  if (const absl::Status loaded = LoadCuda(); !loaded.ok()) {
    if (name != "auto") return loaded;
    device.warning = std::string(loaded.message());
    return device;
  }
  device.cuda = true;
  device.members_together = true;
  device.provenance.set_device(gpus[static_cast<size_t>(device.index)]);
  const long cuda = at::detail::getCUDAHooks().versionCUDART();  // 1000 major + 10 minor
  device.provenance.set_cuda_version(absl::StrCat(cuda / 1000, ".", cuda % 1000 / 10));
  if (!kernels::HasCudaKernels()) {
    device.warning =
        "built without nvcc, so the GPU runs LibTorch's slower operators; install CUDA's "
        "toolkit and build again";
  }
  device.make_graph_pool = [place = PlaceOf(device)] { return MakeCudaGraphPool(place); };
  device.memory = [place = PlaceOf(device)] { return MeasureMemory(place); };
  device.reset_peak_memory = [place = PlaceOf(device)] {
    at::globalContext().lazyInitDevice(place.type());  // the allocator knows no device before
    c10::getDeviceAllocator(place.type())->resetPeakStats(place.index());
  };
  return device;
}

std::string MklMode() {
  // mkl_cbwr_get of MKL's manual, as LibTorch's library exports it.
  using Get = int (*)(int which);
  const auto get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "mkl_serv_cbwr_get"));
  if (get == nullptr) return "unknown";
  constexpr int kEverything = -1, kStrict = 0x10000;
  const int mode = get(kEverything);
  static constexpr std::pair<int, const char*> kBranches[] = {
      {2, "AUTO"}, {3, "COMPATIBLE"}, {10, "AVX2"}, {12, "AVX512"}, {14, "AVX512_E1"}};
  std::string branch = absl::StrCat("branch ", mode & ~kStrict);
  for (const auto& [number, name] : kBranches) {
    if (number == (mode & ~kStrict)) branch = name;
  }
  return absl::StrCat(branch, (mode & kStrict) != 0 ? ",STRICT" : "");
}

void PrepareThread(const Device& device) {
  models::SetThreads(device.threads);
  // A thread that flushes denormal numbers to zero computes other bits.
  at::globalContext().setFlushDenormal(false);
  if (!device.cuda) return;
  const c10::Device place = PlaceOf(device);
  const c10::impl::VirtualGuardImpl streams(c10::DeviceType::CUDA);
  if (streams.getStream(place) == streams.getDefaultStream(place)) {
    streams.exchangeStream(streams.getStreamFromGlobalPool(place));
  }
}

void SetTf32Products(bool wanted) { at::globalContext().setAllowTF32CuBLAS(wanted); }

bool IsOutOfMemory(const std::exception& exception) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&exception) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) return true;
  const absl::string_view text = exception.what();
  return absl::StrContains(text, "DefaultCPUAllocator: can't allocate memory") ||
         absl::StrContains(text, "DefaultCPUAllocator: not enough memory") ||
         absl::StrContains(text, "CUDA error: out of memory") ||
         absl::StrContains(text, "CUBLAS_STATUS_ALLOC_FAILED") ||
         absl::StrContains(text, "CUDNN_STATUS_ALLOC_FAILED");
}

bool IsDeviceLost(const std::exception& exception) {
  // Errors after which, by the documentation of cudaError_t, the process must end, or with which
  // the driver says that the GPU went away or cannot be had now.
  struct Fault {
    int32_t code;
    const char* text;
  };
  static constexpr Fault kFaults[] = {
      {3, "initialization error"},
      {46, "busy or unavailable"},
      {100, "no CUDA-capable device is detected"},
      {214, "uncorrectable ECC error"},
      {220, "uncorrectable NVLink error"},
      {226, "or a hardware error"},
      {304, "OS call failed"},
      {700, "an illegal memory access was encountered"},
      {702, "the launch timed out and was terminated"},
      {710, "device-side assert triggered"},
      {714, "hardware stack error"},
      {715, "an illegal instruction was encountered"},
      {716, "misaligned address"},
      {717, "operation not supported on global/shared address space"},
      {718, "invalid program counter"},
      {719, "unspecified launch failure"},
      {802, "system not yet initialized"},
      {803, "unsupported display driver"},
      {999, "unknown error"},
  };
  const auto* const error = dynamic_cast<const c10::AcceleratorError*>(&exception);
  const absl::string_view text = exception.what();
  const bool is_cuda = absl::StrContains(text, "CUDA");
  return std::any_of(std::begin(kFaults), std::end(kFaults), [&](const Fault& fault) {
    return error != nullptr ? error->get_error_code() == fault.code
                            : is_cuda && absl::StrContains(text, fault.text);
  });
}

bool IsLibraryMissing(const std::exception& exception) {
  return absl::StrContains(exception.what(), "cannot open shared object file");  // of dlopen
}

std::string FirstLine(absl::string_view message) {
  const std::string line(message.substr(0, message.find('\n')));
  return line.empty() ? "an exception without a message" : line;
}

}  // namespace lengthwise::worker::training
