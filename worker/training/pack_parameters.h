// The numbers of a pack's models, whatever network computes with them: how they begin, how a step
// changes them, and how checkpoints hold them.
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
  // Initial weights of all members for a layout that the network has completed. INVALID_ARGUMENT
  // for an optimizer that cannot be made.
  static absl::StatusOr<std::unique_ptr<PackParameters>> Create(
      std::unique_ptr<models::ParameterLayout> layout, const Blueprint& blueprint,
      absl::Span<const MemberSeeds> members, at::Device device);

  models::ParameterArena& arena() { return arena_; }

  // All that the `step`-th step takes from its number and the members' learning rates.
  std::vector<double> StepNumbers(int64_t step, absl::Span<const double> learning_rates) const {
    return optimizer_->StepNumbers(step, learning_rates);
  }

  // Clips the gradients of the range's members and makes a step with them. `step_numbers` are
  // StepNumbers, double and on the arena's device. Returns the norms before clipping, [count].
  at::Tensor Step(MemberRange range, const at::Tensor& step_numbers);

  // As PackModel::Save and PackModel::Load.
  std::string Save(int64_t member, const checkpoints::CheckpointHeader& header);
  absl::StatusOr<checkpoints::CheckpointHeader> Load(int64_t member, absl::string_view bytes,
                                                     absl::string_view fingerprint);

 private:
  PackParameters(std::unique_ptr<models::ParameterLayout> layout,
                 std::unique_ptr<models::Optimizer> optimizer, const Blueprint& blueprint,
                 absl::Span<const MemberSeeds> members, at::Device device);

  const std::unique_ptr<models::ParameterLayout> layout_;
  const std::unique_ptr<models::Optimizer> optimizer_;
  const double clip_norm_;
  models::ParameterArena arena_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_PARAMETERS_H_
