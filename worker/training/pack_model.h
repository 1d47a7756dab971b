// The models of a pack on a device: one training step, scores, and what a checkpoint holds.
// Everything that touches tensors is behind this interface; its users are free of LibTorch, but
// must expect its exceptions.
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

// In what the members of a pack differ.
struct MemberSeeds {
  uint64_t weight_seed = 0;
  uint64_t data_seed = 0;
};

// Measured on one member's batch, before the step's update.
struct StepMeasurement {
  // Mean over batch and outputs: soft-max cross-entropy, nats; of a regression the squared error.
  float loss = 0;
  // Share of outputs, 0 to 1: masked token accuracy; of a regression those close to their targets.
  float accuracy = 0;
  // Before clipping.
  float gradient_norm = 0;
};

// Not thread-safe; on a GPU, of a thread that PrepareThread has set up. Methods may throw what
// LibTorch throws (c10::Error, std::bad_alloc: out of memory).
class PackModel {
 public:
  virtual ~PackModel() = default;

  // Splits `members` (ascending) into the ranges that kernels compute together: single members or,
  // if device.members_together, runs of neighbours.
  virtual std::vector<MemberRange> Ranges(absl::Span<const int64_t> members) const = 0;

  // Makes the `step`-th step (from 1) on a batch of the step's length, each of `members`
  // (ascending) at its own of `learning_rates`, and returns their measurements, in that order. The
  // models of the others are not touched.
  virtual std::vector<StepMeasurement> TrainStep(int64_t step, absl::Span<const int64_t> members,
                                                 absl::Span<const double> learning_rates) = 0;

  // Seconds in which the device was idle while samples and positions were made, summed over all
  // TrainStep calls. A GPU's samples are made while it computes the step before.
  virtual double data_seconds() const = 0;

  // The scores of a range of members on `sequences` evaluation sequences of `length`; nothing if
  // `keep_going`, asked often, said no.
  virtual std::optional<std::vector<evaluation::LengthScore>> Score(
      MemberRange range, int64_t length, int64_t sequences, const std::function<bool()>& keep_going,
      const evaluation::ScoreOptions& options) = 0;

  // Accuracy of a member on the first `examples` of its own data set, of each of the training's
  // lengths as many, weighted with that number; nothing as for Score.
  virtual std::optional<double> TrainingAccuracy(int64_t member, int64_t examples,
                                                 const std::function<bool()>& keep_going) = 0;

  // Captures the attention for evaluation sequence `sequence` (from 0) of `length`, or for a
  // sequence that a user gave.
  virtual v1::AttentionMap CaptureAttention(int64_t member, int64_t length, int64_t sequence) = 0;
  virtual v1::AttentionMap CaptureAttention(int64_t member, const data::GivenSequence& given) = 0;

  // As evaluation::ProjectActivations.
  virtual std::vector<v1::Projection> Project(int64_t member, int64_t fitted_length,
                                              int64_t sequences,
                                              absl::Span<const int32_t> lengths) = 0;

  // A checkpoint's bytes; and back, with the errors of ReadTrialCheckpoint.
  virtual std::string Save(int64_t member, const checkpoints::CheckpointHeader& header) = 0;
  virtual absl::StatusOr<checkpoints::CheckpointHeader> Load(int64_t member,
                                                             absl::string_view bytes,
                                                             absl::string_view fingerprint) = 0;
};

// A sentence for people about what is not as it could be: that steps on a GPU are not recorded.
using Warn = std::function<void(const std::string&)>;

// Builds the network and the initial weights of all members. INVALID_ARGUMENT for a network that
// cannot be built. The blueprint must outlive the model.
absl::StatusOr<std::unique_ptr<PackModel>> CreatePackModel(
    const Blueprint& blueprint, absl::Span<const MemberSeeds> members, const Device& device,
    Warn warn = [](const std::string&) {});

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_MODEL_H_
