// A trial's checkpoint: everything that a bit-exact resume needs and that the specification does
// not give. Random numbers are addressed and not drawn in turn (random/stream.h), so that is the
// parameters, Adam's moments and the step.
//
// A safetensors file with the tensors parameters/<name>, adam/first_moment/<name> and
// adam/second_moment/<name> for every parameter <name> of the layout, and as metadata "format"
// ("lengthwise.checkpoint.1"), "step", "program_version" and "specification" (the fingerprint), and
// where they are set "training_seconds", "stop_reason" and "schedule". A trial that has ended
// training needs its parameters alone: the checkpoint may leave out the moments and then has
// "optimizer_state": "dropped". One that was written before the evaluation of its step has
// "evaluation": "due". No LibTorch.
#ifndef LENGTHWISE_WORKER_DATA_TRIAL_CHECKPOINT_H_
#define LENGTHWISE_WORKER_DATA_TRIAL_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/parameters/layout.h"
#include "proto/specification.pb.h"

namespace lengthwise::worker::checkpoints {

struct CheckpointHeader {
  // Training steps done.
  int64_t step = 0;
  // Version and source revision of the program that wrote the checkpoint.
  std::string program_version;
  // Fingerprint of the trial's specification.
  std::string fingerprint;
  // Wall-clock seconds of training up to this step, over all attempts. 0, which writes nothing, for
  // a trial that no clock stops: its checkpoints must have the same bytes whenever it is run.
  double training_seconds = 0;
  // Why training ended at this step, before the last; empty, which writes nothing, where it goes
  // on.
  std::string stop_reason;
  // models::Schedule::State; empty, which writes nothing, where the schedule has none.
  std::string schedule_state;
  // False: without the moments.
  bool has_optimizer_state = true;
  // The evaluation during training that belongs to this step is still to be made.
  bool evaluation_due = false;
};

// A member's rows of the arena, layout.row_size() elements each. T is float or double, const or
// not.
template <typename T>
struct TrialRows {
  absl::Span<T> parameters;
  absl::Span<T> first_moments;
  absl::Span<T> second_moments;
};

// Digest (proto/digest.h) of what decides the numbers in a checkpoint of a step: of all but
// `evaluation`, `evaluated_trial` and `keep`. So a trial that only evaluates can read the
// checkpoint of the trial it names, with lengths of its own. Evaluations during training do decide
// how many steps are made where training.stop_at_accuracy is set, but not what the parameters are
// after a number of steps, and the checkpoint says itself whether training ended there.
std::string Fingerprint(const v1::TrialSpecification& specification);

// Returns the checkpoint's bytes. The same arguments give the same bytes. The moments are not read
// where the header has no optimizer state. Defined for float and double.
template <typename T>
std::string WriteTrialCheckpoint(const models::ParameterLayout& layout,
                                 const CheckpointHeader& header, TrialRows<const T> rows);

// Fills the rows (but not their padding, which the arena keeps zero) and returns the header.
// Moments that the checkpoint does not have become zero. DATA_LOSS for bytes that are not a
// checkpoint of this layout and type; FAILED_PRECONDITION for a checkpoint of another trial, that
// is with another fingerprint. After an error the rows are as they were. Defined for float and
// double.
template <typename T>
absl::StatusOr<CheckpointHeader> ReadTrialCheckpoint(absl::string_view bytes,
                                                     const models::ParameterLayout& layout,
                                                     absl::string_view fingerprint,
                                                     TrialRows<T> rows);

}  // namespace lengthwise::worker::checkpoints

#endif  // LENGTHWISE_WORKER_DATA_TRIAL_CHECKPOINT_H_
