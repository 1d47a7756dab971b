// Reads and writes trial checkpoints, which hold everything a bit-exact resume needs beyond the
// specification. Random numbers are addressed, not drawn in turn (random/stream.h), so the
// parameters, Adam's moments and the step suffice.
//
// The format is a safetensors file with the tensors parameters/<name>, adam/first_moment/<name> and
// adam/second_moment/<name> for every parameter <name> of the layout. Its metadata has "format"
// ("lengthwise.checkpoint.1"), "step", "program_version" and "specification" (the fingerprint),
// and, if set, "training_seconds", "stop_reason", "schedule", "kernels" and "losses_since_point". A
// trial that has finished training needs only its parameters: its checkpoint may omit the moments,
// and then has "optimizer_state": "dropped". A checkpoint written before the evaluation of its step
// has "evaluation": "due". No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_TRIAL_CHECKPOINT_H_
#define LENGTHWISE_WORKER_DATA_TRIAL_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/parameters/layout.h"
#include "models/parameters/safetensors.h"
#include "proto/specification.pb.h"

namespace lengthwise::worker::checkpoints {

// Says which kernels made the steps from the previous entry's last step to this one's.
struct KernelSteps {
  int64_t last_step = 0;
  // models::DescribeChoice, or who made them; without semicolons.
  std::string kernels;

  friend bool operator==(const KernelSteps&, const KernelSteps&) = default;
};

struct CheckpointHeader {
  // Training steps done.
  int64_t step = 0;
  // Version and source revision of the program that wrote the checkpoint.
  std::string program_version;
  // Fingerprint of the trial's specification.
  std::string fingerprint;
  // Wall-clock seconds of training up to this step, over all attempts. 0 (not written) for trials
  // without a time limit: their checkpoints must have the same bytes in every run.
  double training_seconds = 0;
  // Why training stopped early at this step. Empty (not written) if it continues.
  std::string stop_reason;
  // models::Schedule::State. Empty (not written) if the schedule has none.
  std::string schedule_state;
  // False if the moments are omitted.
  bool has_optimizer_state = true;
  // True if the evaluation due at this step has not run yet.
  bool evaluation_due = false;
  // Steps that attempts on GPUs made, and those between them, in order. Empty (not written) if all
  // ran on CPUs. Without measured speeds: equal runs have checkpoints with the same bytes.
  std::vector<KernelSteps> kernels;
  // Sum and number of the losses since the newest point of the loss curve. Not written if there are
  // none.
  double loss_sum = 0;
  int64_t losses = 0;
};

// The bytes of a member's rows of the arena, layout.row_size() numbers each.
struct TrialRows {
  models::DataType type = models::DataType::kFloat32;
  absl::Span<char> parameters;
  absl::Span<char> first_moments;
  absl::Span<char> second_moments;
};

// Digest (proto/digest.h) of all fields that determine the numbers in a step's checkpoint: all
// except `evaluation`, `evaluated_trial` and `keep`. An evaluation-only trial can therefore read
// the checkpoint of the trial it names with other lengths. With training.stop_at_accuracy,
// evaluations decide how many steps run, but not the parameters after a given step; the checkpoint
// records whether training ended there.
std::string Fingerprint(const v1::TrialSpecification& specification);

// Returns the checkpoint's bytes; equal arguments give equal bytes. The moments are not read if the
// header has no optimizer state.
std::string WriteTrialCheckpoint(const models::ParameterLayout& layout,
                                 const CheckpointHeader& header, const TrialRows& rows);

// Fills the rows, except their padding, which the arena keeps zero, and returns the header. Missing
// moments become zero. DATA_LOSS if the bytes are not a checkpoint of this layout and type;
// FAILED_PRECONDITION if the checkpoint has another fingerprint and so belongs to another trial.
// After an error the rows are unchanged.
absl::StatusOr<CheckpointHeader> ReadTrialCheckpoint(absl::string_view bytes,
                                                     const models::ParameterLayout& layout,
                                                     absl::string_view fingerprint,
                                                     const TrialRows& rows);

}  // namespace lengthwise::worker::checkpoints

#endif  // LENGTHWISE_WORKER_DATA_TRIAL_CHECKPOINT_H_
