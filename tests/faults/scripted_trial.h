// A trial without a model. Its loss, accuracies and checkpoints are a pure function of its
// specification and the step, as for a real trial, and each step depends on the previous one. A
// worker that skips or repeats a step, or resumes from another trial's checkpoint, produces other
// numbers from then on.
#ifndef LENGTHWISE_TESTS_FAULTS_SCRIPTED_TRIAL_H_
#define LENGTHWISE_TESTS_FAULTS_SCRIPTED_TRIAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "proto/specification.pb.h"

namespace lengthwise::faults {

class ScriptedTrial {
 public:
  explicit ScriptedTrial(const v1::TrialSpecification& specification);

  int64_t step() const { return step_; }
  int64_t steps() const { return specification_.training().steps(); }

  // Makes a step, and adds its point if one is due.
  void Advance(v1::TrainingPoints& points);
  // The accuracies of this step, as `final` or as an evaluation during training.
  v1::LengthAccuracies Evaluate(bool final) const;

  bool IsReportDue() const;
  bool IsEvaluationDue() const;
  bool IsCheckpointDue() const;

  // About 2 KB.
  std::string Checkpoint() const;
  // Returns false and changes nothing if the bytes are not a checkpoint of this specification.
  bool Resume(absl::string_view checkpoint);

 private:
  const v1::TrialSpecification specification_;
  int64_t step_ = 0;
  uint64_t state_ = 0;
};

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_SCRIPTED_TRIAL_H_
