// Runs a pack from its checkpoints through training and evaluation to outcomes. No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_PACK_RUN_H_
#define LENGTHWISE_WORKER_TRAINING_PACK_RUN_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/layers/kernel_choice.h"
#include "proto/event.pb.h"
#include "proto/worker_service.pb.h"
#include "worker/data/trial_checkpoint.h"
#include "worker/pack_session.h"
#include "worker/training/blueprint.h"
#include "worker/training/core_sharing.h"
#include "worker/training/device.h"
#include "worker/training/pace.h"
#include "worker/training/pack_evaluation.h"
#include "worker/training/pack_kernels.h"
#include "worker/training/pack_model.h"
#include "worker/training/trial_reporter.h"

namespace lengthwise::worker::training {

// Trials with one PackKey, trained in lockstep. A member that was resumed from a later step than
// the others skips the steps that it has done, and a member that reached its stop target skips the
// rest. All are evaluated once the last has ended training.
//
// Each step emits, in this order: its point of the loss curve, its evaluation, its checkpoint. So
// everything up to a checkpoint's step precedes the checkpoint in the log, and a resumed run
// repeats exactly what an undisturbed run emits after it. The checkpoint records whether training
// ended early at its step.
//
// A pack that drains interrupts an evaluation, which may take minutes. The checkpoint records that
// the evaluation is due, and the resumed run begins with it. EvaluateInterval names the
// exception.
//
// Trials that only evaluate go from their checkpoints straight to the evaluation.
//
// Not thread-safe.
class PackRun {
 public:
  enum class End {
    kComplete,  // every trial has an outcome or was cancelled
    kLost,
    kDrained,
  };

  // `trials` are indices into the lease; the lease, the session, the device and `sharing` must
  // outlive the run. `sharing` says how many threads train; null: those of the device. `kernels`
  // chooses the pack's kernels; null: our own. Run it and destroy it on the thread that made it.
  PackRun(const v1::Lease& lease, const std::vector<int64_t>& trials, const Device& device,
          PackSession& session, CoreSharingMonitor* sharing, PackKernels* kernels = nullptr);

  // An error means that this machine cannot run the pack; no trial has started. Throws what
  // LibTorch throws; then call FailUnfinished.
  absl::StatusOr<End> Run();

  // Writes a line into the log of every trial that has no outcome yet.
  void LogToUnfinished(v1::LogLine::Severity severity, absl::string_view text);
  // Gives this outcome to every trial that has none yet.
  void FailUnfinished(v1::Outcome::Kind kind, absl::string_view reason);

 private:
  using Clock = std::chrono::steady_clock;

  struct Member {
    int64_t trial = 0;
    const v1::LeasedTrial* leased = nullptr;
    std::string fingerprint;
    TrialReporter reporter;
    TrainingTime time;
    // The learning rate's schedule; set when the pack is built.
    std::unique_ptr<models::Schedule> schedule;
    // Steps done.
    int64_t step = 0;
    // Step of the newest checkpoint. 0 if there is none, or if it says that an evaluation is due
    // that was made since.
    int64_t checkpoint_step = 0;
    // True if the evaluation of this step, during training, has not been made yet.
    bool evaluation_due = false;
    // Reason why training ended before the last step; empty while it continues.
    std::string stop_reason;
    // Kernels of the steps that earlier attempts made.
    std::vector<checkpoints::KernelSteps> earlier_kernels;
    // Measurement of this attempt's newest step. Before the first step its loss is NaN.
    StepMeasurement newest = {.loss = std::numeric_limits<float>::quiet_NaN()};
    // Sum and number of the losses since the newest point.
    double loss_sum = 0;
    int64_t losses = 0;
    double evaluation_seconds = 0;
    // True if the member has an outcome or was cancelled.
    bool finished = false;
  };

  // Asks the session about every trial, drops cancelled trials, and sets the number of threads that
  // is fastest now. Call it before each step and each part of an evaluation.
  PackSession::Directive Listen();
  std::vector<int64_t> Unfinished() const;
  // Returns true if the member completed its last step or stopped early.
  bool HasEndedTraining(const Member& member) const;
  // Unfinished members that have not ended training.
  std::vector<int64_t> InTraining() const;
  Member& member(int64_t index) { return members_[static_cast<size_t>(index)]; }

  absl::StatusOr<std::string> FetchData(absl::string_view sha256, int64_t bytes);
  // True once the model is built; false if the trials have ended, or the session has.
  absl::StatusOr<bool> Build();
  void Resume(int64_t index);
  // A step in flight on the device.
  struct StartedStep {
    int64_t step = 0;
    std::vector<int64_t> members;
    Clock::time_point start;
    // See PackSession::StepTime.
    double data_wait_seconds = 0;
  };

  PackSession::Directive Train();
  StartedStep StartStep(int64_t step, std::vector<int64_t> members);
  // Returns true if the next step can start before this one's measurements are known: they decide
  // neither a learning rate nor the end of training, and neither an evaluation nor a checkpoint
  // needs the models as they are after it. A loss that is not finite is found a step later; the
  // step that its member made meanwhile is not recorded.
  bool CanRunAhead(const StartedStep& started) const;
  // Waits for the step and records its measurements.
  void ReadMeasurements(const StartedStep& started);
  // As ReadMeasurements, and then evaluation and checkpoint, if due. No later step may have
  // started.
  PackSession::Directive EndStep(const StartedStep& started);
  void CountRate(size_t members);
  bool IsEvaluationDue(int64_t step) const;
  bool IsCheckpointDue(int64_t step) const;
  void TakeMeasurement(Member& member, int64_t step, const StepMeasurement& measurement,
                       double seconds);
  void AddPoint(Member& member);
  void StopAtAccuracy(Member& member, const v1::LengthAccuracies& accuracies);
  // Makes evaluations that an earlier attempt left undone.
  PackSession::Directive EvaluateDue();
  PackSession::Directive EvaluateInterval(int64_t step, const std::vector<int64_t>& members);
  PackSession::Directive EvaluateFinally(MemberRange range);
  // Asks the session and sets `directive`. Returns true if the range's evaluation continues; false
  // also if all its members were cancelled.
  bool IsWanted(MemberRange range, PackSession::Directive& directive);
  // Sends the member's results, then its outcome, unless the session stops it before.
  PackSession::Directive Conclude(int64_t index, PackEvaluation::Final result);
  // Checkpoints each unfinished member of `members`, which completed `step`, if a checkpoint is due
  // by steps or by time, or its training has ended.
  void CheckpointStep(int64_t step, const std::vector<int64_t>& members);
  void WriteCheckpoint(int64_t index);
  // Returns true if the member's checkpoint must contain the optimizer's state.
  bool NeedsOptimizerState(const Member& member) const;
  // Kernels of all steps so far; empty if all ran on CPUs.
  std::vector<checkpoints::KernelSteps> KernelsSoFar(const Member& member) const;
  // Value of Provenance.kernels.
  std::string DescribeKernels(const Member& member) const;
  void Finish(Member& member, v1::Outcome outcome);
  void Fail(Member& member, v1::Outcome::Kind kind, absl::string_view reason);
  // Fails permanently for a loss that is not finite, because every attempt would reach it.
  void FailDiverged(Member& member, double loss, absl::string_view where);
  static double SecondsSince(Clock::time_point start);

  void ReportTraining();
  // Reports how many trials of this pack's shape the device's memory holds.
  void ReportCapacity();
  void ReportEvaluation(MemberRange range, int64_t done, double seconds_left);

  const Device& device_;
  PackSession& session_;
  CoreSharingMonitor* const sharing_;
  PackKernels* const kernels_;
  std::vector<Member> members_;
  Blueprint blueprint_;
  // This attempt's kernels with measured speeds, and without (DescribeChoice). Empty on a CPU.
  std::string kernel_summary_;
  std::string kernel_choice_;
  // Applies the choice from the building of the model on.
  std::optional<models::KernelScope> kernel_scope_;
  std::unique_ptr<PackModel> model_;
  std::optional<PackEvaluation> evaluation_;  // once the model is built
  StepRate rate_;
  // Time at which the newest measurements were read.
  Clock::time_point read_time_;
  // Time at which training started or a checkpoint was last due.
  Clock::time_point checkpoint_time_;
  // Work (pace.h) per second of the pack's training; 0 if unknown.
  double work_per_second_ = 0;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_PACK_RUN_H_
