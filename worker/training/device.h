// The device that a worker trains on, and the settings of LibTorch and its libraries that make
// results repeatable.
#ifndef LENGTHWISE_WORKER_TRAINING_DEVICE_H_
#define LENGTHWISE_WORKER_TRAINING_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "worker/training/device_graph.h"

namespace lengthwise::worker::training {

struct Device {
  bool cuda = false;
  // Which GPU; 0 on a CPU.
  int index = 0;
  // True if kernels compute the members of a pack together. On a GPU thirty small models then cost
  // little more than one. False on a CPU, where a pack is bit-identical to its members trained
  // alone.
  bool members_together = false;
  // Threads of CPU kernels.
  int threads = 1;
  v1::Provenance provenance;
  // Why this process cannot use an existing GPU, or all of it; the remedy follows the last "; ".
  // Empty if there is no problem.
  std::string warning;
  // For a device whose work can be recorded: graphs for one model. Not set for others; may give
  // null, and then nothing is recorded.
  std::function<std::unique_ptr<GraphPool>()> make_graph_pool;
};

// Chooses the device by name ("cpu", "cuda", "cuda:N" or "auto") and sets what holds for the whole
// process: libtorch_cuda, LibTorch's large part, is loaded only here and only for a GPU; MKL's
// reproducible mode is chosen, unless MKL_CBWR is set already; deterministic algorithms are asked
// for. Call it before the first tensor is computed. `threads` 0 means one for each
// usable CPU (platform/usable_cpus.h).
// "auto" takes the first GPU, or else the CPU: also where there is a GPU that LibTorch cannot use,
// which `warning` then explains.
// INVALID_ARGUMENT for a device that is not there, saying which are.
absl::StatusOr<Device> OpenDevice(absl::string_view name, int32_t threads);

// Sets what LibTorch keeps for each thread (its number of OpenMP threads, denormal numbers, and on
// a GPU a stream of its own, since nothing can be recorded on the default one). Call it on the
// thread that trains.
void PrepareThread(const Device& device);
// Sets the calling thread's number of OpenMP threads. Results do not depend on it.
void SetThreads(int threads);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_DEVICE_H_
