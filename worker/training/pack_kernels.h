// Chooses the kernels of each pack on a GPU (flag --kernels). No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_PACK_KERNELS_H_
#define LENGTHWISE_WORKER_TRAINING_PACK_KERNELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/kernel_selection.h"
#include "platform/mutex.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"

namespace lengthwise::worker::training {

// A problem of a pack's shape for measurements: a layer of all members with the batch of a step, or
// as many sequences as LibTorch's operators have memory for.
struct KernelProblem {
  int64_t members = 1;
  int64_t sequences = 1;  // per member
  int64_t tokens = 1;     // per sequence
  int64_t d_model = 1;
  int64_t heads = 1;
  int64_t hidden = 1;   // features between the two feed-forward layers
  int64_t classes = 2;  // per output
  bool in_bfloat16 = false;
  bool in_tf32 = false;
  bool causal = false;
  // False if the network attends without the encoding's terms; attention is then not measured.
  bool attends = true;
  Blueprint::Choice encoding;
  Blueprint::Choice optimizer;
};

KernelProblem ProblemOf(const Blueprint& blueprint, int64_t members);

// Compares the fused operations that the pack uses with LibTorch's operators on `device`, which may
// be a CPU: times on the whole problem, results on at most 256 of its sequences. Call it on a
// thread set up by PrepareThread. Throws what IsDeviceLost is true for. Results agree if they
// differ by at most 1e-4 of a tensor's largest magnitude in float32, 1e-2 with TF32 products or
// 5e-2 with bfloat16 products.
std::vector<models::KernelDecision> MeasureKernels(const KernelProblem& problem,
                                                   const Device& device);

// Returns why the device cannot run our kernels, such as "built without nvcc"; empty if it can.
std::string WhyNoKernels(const Device& device);

// Decides once per pack shape and remembers the decision as long as the process runs. A decision
// made while memory ran out is used for its pack only. Call Choose on the training thread;
// summary() is thread-safe.
class PackKernels {
 public:
  struct Options {
    // "auto": our kernels where they agree with LibTorch's and are faster; "fused": our kernels,
    // wherever they support the tensors; "plain": LibTorch's operators.
    std::string mode = "auto";
    // Tests replace these functions.
    std::function<std::vector<models::KernelDecision>(const KernelProblem&, const Device&)>
        measure = MeasureKernels;
    std::function<std::string(const Device&)> why_none = WhyNoKernels;
  };
  struct Chosen {
    models::KernelChoice choice;
    // Value of v1::Provenance.kernels.
    std::string summary;
  };

  // `device` must outlive this.
  PackKernels(const Device& device, Options options);

  // Returns the choice for packs of this blueprint; on a CPU always our kernels. Logs new
  // measurements.
  Chosen Choose(const Blueprint& blueprint, int64_t members);

  // Returns the choice for the newest pack, or the mode before the first pack. Empty on a CPU.
  std::string summary() const;

 private:
  Chosen Decide(const Blueprint& blueprint, int64_t members);

  const Device& device_;
  const Options options_;
  std::map<std::string, Chosen> known_;  // by pack shape
  mutable platform::Mutex mutex_;
  std::string summary_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_KERNELS_H_
