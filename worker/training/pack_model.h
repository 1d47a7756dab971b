// Interface to a pack's models on a device: training steps, scores and checkpoints. It hides
// everything that touches tensors. Callers do not depend on LibTorch but must expect its
// exceptions.
#ifndef LENGTHWISE_WORKER_TRAINING_PACK_MODEL_H_
#define LENGTHWISE_WORKER_TRAINING_PACK_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/event.pb.h"
#include "worker/data/trial_checkpoint.h"
#include "worker/evaluation/length_score.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"

namespace lengthwise::worker::training {

// Seeds in which the members of a pack differ.
struct MemberSeeds {
  uint64_t weight_seed = 0;
  uint64_t data_seed = 0;
};

// Measures of one member's batch, before the step's update.
struct StepMeasurement {
  // Mean over batch and outputs: soft-max cross-entropy in nats or, for a regression, squared
  // error.
  float loss = 0;
  // Share of counted outputs that are right or, for a regression, close to their targets; 0 to 1.
  float accuracy = 0;
  // Norm before clipping.
  float gradient_norm = 0;
};

// Not thread-safe. On a GPU, call it on a thread set up by PrepareThread. Methods may throw what
// LibTorch throws (c10::Error; std::bad_alloc if memory runs out).
class PackModel {
 public:
  virtual ~PackModel() = default;

  // What computes it, for the provenance; empty for this program's own networks.
  virtual std::string software() const { return ""; }

  // Splits `members` (ascending) into the ranges that kernels compute together: single members or,
  // if device.members_together, runs of neighbours.
  virtual std::vector<MemberRange> Ranges(absl::Span<const int64_t> members) const = 0;

  // Starts the `step`-th step (from 1) on a batch of the step's length. Trains each of `members`
  // (ascending) at its entry of `learning_rates`. Does not touch other members' models. The device
  // may still compute afterwards; what is called next sees the models after the step.
  virtual void StartStep(int64_t step, absl::Span<const int64_t> members,
                         absl::Span<const double> learning_rates) = 0;

  // Waits for the oldest step that was started and not finished, and returns the measurements of
  // its members in their order.
  virtual std::vector<StepMeasurement> FinishStep() = 0;

  // Returns true if a step should be started before the previous one is finished, so that the
  // device never waits for the host.
  virtual bool OverlapsSteps() const = 0;

  // Seconds for which the device was idle while samples and positions were generated, summed over
  // all steps. For a GPU, samples are generated while it computes the previous step.
  virtual double data_seconds() const = 0;

  // Returns the scores of a range of members on `sequences` evaluation sequences of `length`;
  // nullopt if `keep_going`, which is called often, returned false.
  virtual std::optional<std::vector<evaluation::LengthScore>> Score(
      MemberRange range, int64_t length, int64_t sequences, const std::function<bool()>& keep_going,
      const evaluation::ScoreOptions& options) = 0;

  // Returns a member's accuracy on the first `examples` of its own data set, an equal number for
  // each training length, weighted by that number; nullopt as for Score.
  virtual std::optional<double> TrainingAccuracy(int64_t member, int64_t examples,
                                                 const std::function<bool()>& keep_going) = 0;

  // Captures the attention for evaluation sequence `sequence` (from 0) of `length`, or for a user's
  // sequence.
  virtual v1::AttentionMap CaptureAttention(int64_t member, int64_t length, int64_t sequence) = 0;
  virtual v1::AttentionMap CaptureAttention(int64_t member, const data::GivenSequence& given) = 0;

  // Returns a member's answer to a user's sequence.
  virtual v1::Answer Predict(int64_t member, const data::GivenSequence& given) = 0;

  // See evaluation::ProjectActivations.
  virtual std::vector<v1::Projection> Project(int64_t member, int64_t fitted_length,
                                              int64_t sequences,
                                              absl::Span<const int32_t> lengths) = 0;

  // Convert a member to a checkpoint's bytes and back. Load has the errors of ReadTrialCheckpoint.
  virtual std::string Save(int64_t member, const checkpoints::CheckpointHeader& header) = 0;
  virtual absl::StatusOr<checkpoints::CheckpointHeader> Load(int64_t member,
                                                             absl::string_view bytes,
                                                             absl::string_view fingerprint) = 0;
};

// Receives a warning for people, for example that steps on a GPU are not recorded.
using Warn = std::function<void(const std::string&)>;

// Builds the network and the initial weights of all members. INVALID_ARGUMENT if the network cannot
// be built. The blueprint must outlive the model.
absl::StatusOr<std::unique_ptr<PackModel>> CreatePackModel(
    const Blueprint& blueprint, absl::Span<const MemberSeeds> members, const Device& device,
    Warn warn = [](const std::string&) {});

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_MODEL_H_
