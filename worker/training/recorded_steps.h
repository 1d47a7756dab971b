// Training steps on a device that can record its work (device_graph.h): the same operations follow
// each other step after step, on other numbers at the same places.
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

// Of which steps one recording is: those that differ in numbers alone.
struct StepKey {
  MemberRange range;
  StepShape shape;

  friend auto operator<=>(const StepKey&, const StepKey&) = default;
};

// What a recording repeats is the first step of its key that was made; whether it does the same for
// other numbers cannot be seen from outside. So a key's first step is made operation by operation
// and recorded; its second one is made both ways, which must leave the same bits in the arena and
// in what was measured; only then is a step a replay. Where anything is not as it should be, or
// fails, as where the memory that recordings keep is missing elsewhere, no step is recorded any
// more: the step is made anew, and training goes on operation by operation, after a warning.
//
// Not thread-safe.
class RecordedSteps {
 public:
  // Makes the step that the numbers in `block` are of: changes the arena's rows of the key's
  // members, as a function of those rows and of the block alone, and returns what it measured.
  using Work = std::function<at::Tensor(const at::Tensor& block)>;

  // The arena must outlive this. `warn` gets a sentence for people.
  RecordedSteps(models::ParameterArena& arena, std::unique_ptr<GraphPool> graphs,
                std::function<void(const std::string&)> warn);

  // Where the numbers of the key's next step are to be: bytes [BlockBytes] of the arena's device.
  // The same memory each time for a key that is recorded: those that come first, up to 128. Steps
  // of others are made operation by operation.
  at::Tensor Block(const StepKey& key);

  // Makes the step whose numbers are in `block`, which Block gave for the key. What it measured
  // holds until the next call; nothing has been waited for. Throws what `work` throws.
  at::Tensor Run(const StepKey& key, const at::Tensor& block, const Work& work);

  // Forgets the keys of other ranges. After the device was waited for.
  void KeepOnly(absl::Span<const MemberRange> ranges);

 private:
  struct Recording {
    at::Tensor block;
    std::unique_ptr<DeviceGraph> graph;
    at::Tensor measured;
    bool verified = false;
  };

  // Rows of parameters and moments.
  using Rows = std::vector<at::Tensor>;

  Rows ViewRows(const MemberRange& range) const;
  Rows CopyRows(const MemberRange& range) const;
  void SetRows(const MemberRange& range, const Rows& rows) const;
  at::Tensor MakeAndRecord(Recording& recording, const at::Tensor& block, const Work& work);
  // `before` are copies of the rows before the step.
  at::Tensor Verify(const StepKey& key, const Rows& before, Recording& recording, const Work& work);
  void GiveUp(absl::string_view why);

  models::ParameterArena& arena_;
  std::unique_ptr<GraphPool> graphs_;  // null once no step is recorded any more
  const std::function<void(const std::string&)> warn_;
  std::map<StepKey, Recording> recordings_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_RECORDED_STEPS_H_
