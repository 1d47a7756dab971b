// Training steps of a pack, the same for every kind of model: inputs for the device, gradients,
// clipping, the optimizer's update, measurements, checkpoints.
#ifndef LENGTHWISE_WORKER_TRAINING_PACK_TRAINING_H_
#define LENGTHWISE_WORKER_TRAINING_PACK_TRAINING_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "c10/core/Event.h"
#include "models/encodings/positions.h"
#include "models/layers/dropout.h"
#include "models/optimizers/optimizer.h"
#include "models/parameters/arena.h"
#include "models/parameters/layout.h"
#include "models/python_network/python_network.h"
#include "worker/data/batch_tensors.h"
#include "worker/data/examples.h"
#include "worker/data/text_positions.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"
#include "worker/training/recorded_steps.h"
#include "worker/training/step_inputs.h"

namespace lengthwise::worker::training {

// Samples of one size of all members, concatenated by member: [count * B] rows.
struct SizedSamples {
  data::Batch batch;
  std::vector<double> positions;  // [count, S, T], or own ones [count, B, T]
};

// A step's samples and positions on the host, of a network or of text.
struct StepSamples {
  // The samples of a step of one size.
  SizedSamples sized;
  // Those of a step of several sizes, which does not use `sized`.
  std::vector<SizedSamples> sizes;
  // Passes over text, for a single member.
  std::vector<data::TextPass> passes;
  std::vector<data::TextPositions> pass_positions;  // of each pass
};

// Parameters, gradients and optimizer state of a pack's models.
struct PackArena {
  std::unique_ptr<models::ParameterLayout> layout;
  std::unique_ptr<models::ParameterArena> arena;
};

// Creates the initial weights of all members for a layout completed by the network.
PackArena MakePackArena(std::unique_ptr<models::ParameterLayout> layout, const Blueprint& blueprint,
                        absl::Span<const MemberSeeds> members, const at::Device& device,
                        const models::ParameterArena::Allocate& allocate = nullptr);

// The training step that all tasks share. Subclasses provide a step's samples, its gradients, and
// the evaluation.
class PackTraining : public PackModel {
 public:
  struct Options {
    // True if kernels compute neighbouring members together.
    bool members_together = false;
    // Records steps. Requires that samples of equal shape mean equal operations, and that all
    // values come from the step's block (step_inputs.h). Null: no step is recorded.
    std::unique_ptr<GraphPool> graphs;
    Warn warn;
    // See PackModel::software.
    std::string software;
  };

  ~PackTraining() override;
  std::string software() const final { return software_; }
  std::vector<MemberRange> Ranges(absl::Span<const int64_t> members) const final;
  void StartStep(int64_t step, absl::Span<const int64_t> members,
                 absl::Span<const double> learning_rates) final;
  std::vector<StepMeasurement> FinishStep() final;
  bool OverlapsSteps() const final { return PreparesAhead(); }
  double data_seconds() const final { return data_seconds_; }
  std::string Save(int64_t member, const checkpoints::CheckpointHeader& header) final;
  absl::StatusOr<checkpoints::CheckpointHeader> Load(int64_t member, absl::string_view bytes,
                                                     absl::string_view fingerprint) final;

 protected:
  // `numbers` are of `members`. The blueprint must outlive this.
  PackTraining(const Blueprint& blueprint, absl::Span<const MemberSeeds> members, PackArena numbers,
               Options options);

  const Blueprint& blueprint() const { return blueprint_; }
  const models::PositionPolicy& positions() const { return positions_; }
  models::ParameterSet Parameters(MemberRange range) const {
    return arena_.Members(range.first, range.count);
  }
  models::ParameterSet Parameters(int64_t member) const { return arena_.Members(member, 1); }
  absl::Span<const uint64_t> DataSeeds(MemberRange range) const;

 private:
  // The samples of step `step` (from 1) for members with these data seeds.
  virtual StepSamples MakeSamples(int64_t step, absl::Span<const uint64_t> data_seeds) const = 0;

  // Adds the gradient of each member's mean loss to its gradients, and returns losses and
  // accuracies [count]. `inputs` are `samples.sized` on the device.
  virtual data::StepMeasures AddGradients(const models::ParameterSet& parameters,
                                          const StepSamples& samples, const StepTensors& inputs,
                                          models::DropoutNumbers dropout) const = 0;

  // Inputs of a range's step: on the host, and being copied to the device.
  struct Prepared {
    int64_t step = 0;
    StepKey key;
    StepSamples samples;
    at::Tensor host;
    at::Tensor block;  // the device's; the same on a CPU whose steps are not recorded
  };

  struct Started {
    // Of each range: losses, accuracies and norms of its members, double [3, count] on the host.
    // Valid after the device has finished the step.
    std::vector<at::Tensor> measured;
    // Set on a GPU: the device reached the step's end.
    std::optional<c10::Event> end;
  };

  // Returns true if the next step is prepared while the device computes this one. A CPU has no time
  // to spare.
  bool PreparesAhead() const { return device_.is_cuda() || recorded_ != nullptr; }
  // Allocates on the host. Pinned for a GPU, which otherwise makes the host wait for each copy.
  at::Tensor EmptyOnHost(at::IntArrayRef shape, at::ScalarType type) const;
  at::Tensor DeviceBlock(const StepKey& key, const at::Tensor& host) const;
  void Prepare(int64_t step, MemberRange range, Prepared& prepared) const;
  // Makes current_ the inputs that the last step prepared, or prepares them now.
  void TakePrepared(int64_t step, MemberRange range);
  // Adds to `started`.
  void TrainRange(int64_t step, MemberRange range, absl::Span<const double> learning_rates,
                  Started& started);
  // Makes the step: a function of the range's rows of the arena, the samples and the inputs.
  // Dropout also depends on `step`.
  at::Tensor MakeStep(int64_t step, MemberRange range, const StepSamples& samples,
                      const StepTensors& inputs);

  const Blueprint& blueprint_;
  std::vector<uint64_t> data_seeds_;  // of the members
  const bool together_;
  const std::string software_;
  const models::PositionPolicy positions_;
  const std::unique_ptr<models::Optimizer> optimizer_;
  const PackArena numbers_;
  models::ParameterArena& arena_;
  const at::Device device_;
  double data_seconds_ = 0;
  // Null if steps are not recorded.
  std::unique_ptr<RecordedSteps> recorded_;
  // What is copied to and from the device belongs to members, not to functions that may throw: see
  // the destructor.
  // Inputs of the next step, and of the range that is being started.
  std::vector<Prepared> prepared_;
  Prepared current_;
  // Steps that are not finished, oldest first.
  std::deque<Started> started_;
  // Ranges of the newest step.
  std::vector<MemberRange> ranges_;
};

// A user's module of each member, with the arena whose memory its process shares.
struct PythonParts {
  std::unique_ptr<models::PythonNetwork> network;
  PackArena numbers;
  // For the provenance.
  std::string software;
};
absl::StatusOr<PythonParts> CreatePythonParts(const Blueprint& blueprint,
                                              absl::Span<const MemberSeeds> members,
                                              const Device& device,
                                              const models::NetworkShape& shape, const Warn& warn);

// Implement CreatePackModel for a blueprint with examples, and for one with text.
absl::StatusOr<std::unique_ptr<PackModel>> CreateNetworkPackModel(
    const Blueprint& blueprint, absl::Span<const MemberSeeds> members, const Device& device,
    Warn warn);
absl::StatusOr<std::unique_ptr<PackModel>> CreateLanguagePackModel(
    const Blueprint& blueprint, absl::Span<const MemberSeeds> members, const Device& device,
    Warn warn);

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_TRAINING_H_
