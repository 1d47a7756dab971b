// Opens the device that a worker trains on, configures LibTorch and its libraries for repeatable
// results, and classifies their exceptions. No LibTorch here.
#ifndef LENGTHWISE_WORKER_TRAINING_DEVICE_H_
#define LENGTHWISE_WORKER_TRAINING_DEVICE_H_

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/event.pb.h"
#include "worker/training/device_graph.h"

namespace c10 {
struct Device;
}

namespace lengthwise::worker::training {

// Memory of a device, in bytes.
struct DeviceMemory {
  // Most that this process used at once since the last reset.
  int64_t peak = 0;
  // Memory that this process could use: its own, and the free part.
  int64_t usable = 0;
};

struct Device {
  bool cuda = false;
  // Index of the GPU; 0 for a CPU.
  int index = 0;
  // True if kernels compute the members of a pack together. On a GPU thirty small models then cost
  // little more than one. False on a CPU, where a pack is bit-identical to its members trained
  // alone.
  bool members_together = false;
  // The Python interpreter of users' modules (--python); empty if this worker computes none.
  std::string python;
  absl::Duration python_limit = absl::Minutes(10);
  // Of these modules, as PyTorch names it.
  std::string python_device = "cpu";
  // Threads of CPU kernels.
  int threads = 1;
  v1::Provenance provenance;
  // Why this process cannot use an existing GPU, or not fully; the remedy follows the last "; ".
  // Empty if there is no problem.
  std::string warning;
  // Creates the graph pool of one model, on devices whose work can be recorded; unset on others.
  // May return null, and then nothing is recorded.
  std::function<std::unique_ptr<GraphPool>()> make_graph_pool;
  // Measures the device's memory, and starts a new peak. Unset on a CPU.
  std::function<DeviceMemory()> memory;
  std::function<void()> reset_peak_memory;
};

// As LibTorch names it.
c10::Device PlaceOf(const Device& device);

// Opens the device by name ("cpu", "cuda", "cuda:N" or "auto") and makes the process-wide settings:
// loads libtorch_cuda, LibTorch's large part, only for a GPU; selects MKL's reproducible mode
// unless MKL_CBWR is set; requests deterministic algorithms. Call it before the first tensor is
// computed. `threads` 0 means one per usable CPU (platform/usable_cpus.h).
//
// "auto" selects the first GPU, or else the CPU. It also selects the CPU if LibTorch cannot use the
// GPU, which `warning` then explains. INVALID_ARGUMENT, with the available devices, if the device
// does not exist.
absl::StatusOr<Device> OpenDevice(absl::string_view name, int32_t threads);

// Returns the reproducible mode of MKL that is in force, in the form of MKL_CBWR. MKL has no branch
// for a request's instruction set on some processors, such as AMD's, and then has AUTO.
std::string MklMode();

// Makes the per-thread settings: the number of threads, denormal numbers and, on a GPU, a stream of
// the thread's own, because the default stream cannot be recorded. Call it on the training thread.
void PrepareThread(const Device& device);

// Lets LibTorch's float32 products on GPUs round their operands to TF32, or no longer, in the whole
// process. A CPU's products stay float32.
void SetTf32Products(bool wanted);

// Returns true if device or host memory was exhausted. LibTorch's CUDA allocators throw a dedicated
// type; its CPU allocator and CUDA's libraries are recognized by their messages.
bool IsOutOfMemory(const std::exception& exception);

// Returns true if a kernel's fault, such as an illegal memory access, or a defect or the loss of
// the GPU ended this process's use of CUDA. CUDA then fails every later call, whatever kernel it is
// for, until the process ends. LibTorch's type has CUDA's error code; other libraries are
// recognized by their messages.
bool IsDeviceLost(const std::exception& exception);

// Returns true if a library that LibTorch loads at its first use, such as NVRTC, is missing.
bool IsLibraryMissing(const std::exception& exception);

// First line of the message. LibTorch appends pages of stack trace, and a module's error has lines
// of its own.
std::string FirstLine(absl::string_view message);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_DEVICE_H_
