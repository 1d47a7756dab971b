// Records training steps as device graphs (device_graph.h) and replays them: every step runs the
// same operations on different values at the same addresses.
#ifndef LENGTHWISE_WORKER_TRAINING_RECORDED_STEPS_H_
#define LENGTHWISE_WORKER_TRAINING_RECORDED_STEPS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/parameters/arena.h"
#include "worker/training/blueprint.h"
#include "worker/training/device_graph.h"
#include "worker/training/step_inputs.h"

namespace lengthwise::worker::training {

// Waits until the device has done all work of the calling thread's stream. No-op on a CPU.
void WaitForDevice(const at::Device& device);

// Identifies steps that can share one recorded graph: same members and shapes, different values.
struct StepKey {
  MemberRange range;
  StepShape shape;

  friend auto operator<=>(const StepKey&, const StepKey&) = default;
};

// A graph might depend on the values of the step it was recorded from, and nothing reveals that
// from outside. So a key's first step runs operation by operation and is recorded. Its second step
// runs both ways; steps are replayed only after this confirms bit-identical results in the arena
// and the measurements. On any difference or failure (for example, because graphs hold memory that
// is needed elsewhere) recording stops for good: the step is repeated operation by operation,
// training continues that way, and a warning is given.
//
// Not thread-safe.
class RecordedSteps {
 public:
  // Makes the step described by `block` and returns its measurements. Changes only the arena's rows
  // of the key's members, as a function of those rows and the block alone.
  using Work = std::function<at::Tensor(const at::Tensor& block)>;

  // The arena must outlive this. `warn` receives a warning for people.
  RecordedSteps(models::ParameterArena& arena, std::unique_ptr<GraphPool> graphs,
                std::function<void(const std::string&)> warn);

  // Returns the memory for the inputs of the key's next step: bytes [BlockBytes] on the arena's
  // device. It is the same memory each time for a recorded key. The first 128 keys are recorded;
  // steps of later keys run operation by operation, as do those whose samples are not in the block.
  at::Tensor Block(const StepKey& key);

  // Makes the step whose inputs are in `block`, the result of Block for the key. The returned
  // measurements are valid until the next call; the call does not wait for the device. Throws what
  // `work` throws.
  at::Tensor Run(const StepKey& key, const at::Tensor& block, const Work& work);

  // Drops the recordings of other ranges. The device must be idle.
  void KeepOnly(absl::Span<const MemberRange> ranges);

 private:
  struct Recording {
    at::Tensor block;
    std::unique_ptr<DeviceGraph> graph;
    at::Tensor measured;
    bool verified = false;
  };

  // Rows of the parameters and moments.
  using Rows = std::vector<at::Tensor>;

  Rows ViewRows(const MemberRange& range) const;
  Rows CopyRows(const MemberRange& range) const;
  void SetRows(const MemberRange& range, const Rows& rows) const;
  at::Tensor MakeAndRecord(Recording& recording, const at::Tensor& block, const Work& work);
  // `before` are copies of the rows before the step.
  at::Tensor Verify(const StepKey& key, const Rows& before, Recording& recording, const Work& work);
  void GiveUp(absl::string_view why);

  models::ParameterArena& arena_;
  std::unique_ptr<GraphPool> graphs_;  // null once recording stopped
  const std::function<void(const std::string&)> warn_;
  std::map<StepKey, Recording> recordings_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_RECORDED_STEPS_H_
