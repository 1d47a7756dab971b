// Holds the parameters and optimizer state of a pack's models, independent of the network:
// initializes them, applies steps, and reads and writes checkpoints.
#ifndef LENGTHWISE_WORKER_TRAINING_PACK_PARAMETERS_H_
#define LENGTHWISE_WORKER_TRAINING_PACK_PARAMETERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/optimizers/optimizer.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "worker/data/trial_checkpoint.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"

namespace lengthwise::worker::training {

at::Device DeviceOf(const Device& device);

// Not thread-safe.
class PackParameters {
 public:
  // Creates the initial weights of all members for a layout completed by the network.
  // INVALID_ARGUMENT if the optimizer cannot be created.
  static absl::StatusOr<std::unique_ptr<PackParameters>> Create(
      std::unique_ptr<models::ParameterLayout> layout, const Blueprint& blueprint,
      absl::Span<const MemberSeeds> members, at::Device device,
      const models::ParameterArena::Allocate& allocate = nullptr);

  models::ParameterArena& arena() { return arena_; }

  // Returns all values that the `step`-th update derives from its number and the members' learning
  // rates.
  std::vector<double> StepNumbers(int64_t step, absl::Span<const double> learning_rates) const {
    return optimizer_->StepNumbers(step, learning_rates);
  }

  // Clips the gradients of the range's members and applies an update. `step_numbers` is the result
  // of StepNumbers as a double tensor on the arena's device. Returns the norms before clipping,
  // [count].
  at::Tensor Step(MemberRange range, const at::Tensor& step_numbers);

  // See PackModel::Save and PackModel::Load.
  std::string Save(int64_t member, const checkpoints::CheckpointHeader& header);
  absl::StatusOr<checkpoints::CheckpointHeader> Load(int64_t member, absl::string_view bytes,
                                                     absl::string_view fingerprint);

 private:
  PackParameters(std::unique_ptr<models::ParameterLayout> layout,
                 std::unique_ptr<models::Optimizer> optimizer, const Blueprint& blueprint,
                 absl::Span<const MemberSeeds> members, at::Device device,
                 const models::ParameterArena::Allocate& allocate);

  const std::unique_ptr<models::ParameterLayout> layout_;
  const std::unique_ptr<models::Optimizer> optimizer_;
  const double clip_norm_;
  models::ParameterArena arena_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_PARAMETERS_H_
