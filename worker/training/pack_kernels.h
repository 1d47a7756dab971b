// The kernels of each pack on a GPU: --kernels. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_PACK_KERNELS_H_
#define LENGTHWISE_WORKER_TRAINING_PACK_KERNELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/kernel_selection.h"
#include "platform/mutex.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"

namespace lengthwise::worker::training {

enum class KernelMode {
  kAuto,   // the faster one that agrees
  kFused,  // our kernels, wherever they take the tensors
  kPlain,  // LibTorch's operators
};

// "auto", "fused" or "plain"; INVALID_ARGUMENT for anything else.
absl::StatusOr<KernelMode> ParseKernelMode(absl::string_view name);

// A small problem of a pack's shape: all members, fewer sequences.
struct KernelProblem {
  int64_t members = 1;
  int64_t sequences = 1;  // of each member
  int64_t tokens = 1;     // of each sequence
  int64_t d_model = 1;
  int64_t heads = 1;
  int64_t hidden = 1;   // features between the two feed-forward layers
  int64_t classes = 2;  // of each output
  bool in_bfloat16 = false;
  bool causal = false;
  // False where the network attends without the encoding's terms; attention is not measured then.
  bool attends = true;
  Blueprint::Choice encoding;
  Blueprint::Choice optimizer;
};

KernelProblem ProblemOf(const Blueprint& blueprint, int64_t members);

// Compares every fused operation with LibTorch's operators on `device`, also on a CPU. Needs a
// thread that PrepareThread has set up. A difference of at most 1e-4 of a tensor's largest number
// is agreement in float32, and one of 5e-2 where products are bfloat16.
std::vector<models::KernelDecision> MeasureKernels(const KernelProblem& problem,
                                                   const Device& device);

// Why the device cannot run our kernels: "built without nvcc"; empty if it can.
std::string WhyNoKernels(const Device& device);

// Decides for each shape of pack once and remembers it while the process lives. Choose is for the
// thread that trains; `summary` may be called from any thread.
class PackKernels {
 public:
  struct Options {
    KernelMode mode = KernelMode::kAuto;
    // Replaced by tests.
    std::function<std::vector<models::KernelDecision>(const KernelProblem&, const Device&)>
        measure = MeasureKernels;
    std::function<std::string(const Device&)> why_none = WhyNoKernels;
  };
  struct Chosen {
    models::KernelChoice choice;
    // As v1::Provenance.kernels.
    std::string summary;
  };

  // `device` outlives this.
  PackKernels(const Device& device, Options options);

  // On a CPU always our kernels. Logs what was measured.
  Chosen Choose(const Blueprint& blueprint, int64_t members);

  // The choice for the newest pack, or the mode before the first pack. Empty on a CPU.
  std::string summary() const;

 private:
  Chosen Decide(const Blueprint& blueprint, int64_t members);

  const Device& device_;
  const Options options_;
  std::map<std::string, Chosen> known_;  // by shape
  mutable platform::Mutex mutex_;
  std::string summary_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_KERNELS_H_
