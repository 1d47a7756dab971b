// Evaluating a stored model again.
#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"
#include "server/coordination/engine.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {

absl::StatusOr<Engine::StoredModel> Engine::FindModel(absl::string_view trial_name) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseTrialName(trial_name));
  ASSIGN_OR_RETURN(const std::optional<TrialRecord> found,
                   writer_.FindTrial(path.experiment, path.trial));
  if (!found.has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no ", trial_name));
  }
  const TrialRecord& trial = *found;
  if (trial.state != v1::SUCCEEDED) {
    return absl::FailedPreconditionError(
        absl::StrCat(trial_name, " is ", v1::TrialState_Name(trial.state),
                     "; only the model of a trial that has succeeded can be evaluated"));
  }
  ASSIGN_OR_RETURN(const EventRecord event, CheckpointEvent(trial));
  if (event.position == 0) {
    return absl::FailedPreconditionError(absl::StrCat(trial_name, " stored no model"));
  }
  StoredModel model;
  ASSIGN_OR_RETURN(v1::Checkpoint checkpoint, ToCheckpoint(event, writer_.name()));
  model.checkpoint = std::move(checkpoint);
  model.step = event.step;
  model.artifact = {
      .experiment = trial.experiment_id, .trial = trial.id, .sha256 = model.checkpoint.sha256()};
  return model;
}

absl::StatusOr<v1::CreateExperimentResponse> Engine::EvaluateTrial(const Submission& submission) {
  ExperimentRecord record = submission.experiment;
  ASSIGN_OR_RETURN(std::optional<v1::CreateExperimentResponse> repeated, FindRepeated(record));
  if (repeated.has_value()) return *std::move(repeated);
  const specification::GridTrial& grid_trial = submission.grid.trials.front();
  const std::string& evaluated = grid_trial.pack->specification.evaluated_trial();
  ASSIGN_OR_RETURN(const StoredModel model, FindModel(evaluated));

  RETURN_IF_ERROR(CheckQuota(record.owner, 1));
  record.counts.set_queued(1);
  RETURN_IF_ERROR(writer_.InsertExperiment(record));
  LENGTHWISE_FAILPOINT("engine.evaluation.create");
  // Only now has the copy a name. It is durable before the commit that speaks of it.
  const absl::Status copied = artifacts_.Copy(model.artifact, record.id, grid_trial.id, model.step);
  if (!copied.ok()) {
    artifacts_.DeleteExperiment(record.id).IgnoreError();
    RETURN_IF_ERROR(writer_.DeleteExperiment(record.key));
    if (IsLost(copied)) {
      return absl::DataLossError(
          absl::StrCat("the model of ", evaluated, " cannot be used: ", copied.message()));
    }
    return absl::UnavailableError(absl::StrCat("cannot copy the model: ", copied.message()));
  }
  LENGTHWISE_FAILPOINT("engine.evaluation.copied");
  effects_.reversals.push_back(
      [this, id = record.id] { artifacts_.DeleteExperiment(id).IgnoreError(); });

  RETURN_IF_ERROR(
      InsertTrials(record, {grid_trial}, 0, {},
                   absl::StrCat("evaluation of ", evaluated, ", submitted by ", record.owner)));
  ASSIGN_OR_RETURN(std::optional<TrialRecord> trial, writer_.FindTrial(record.id, grid_trial.id));
  // As if the trial had been trained up to there: leases, resumption and retention need no more.
  v1::Event event;
  event.set_step(model.step);
  *event.mutable_checkpoint() = model.checkpoint;
  RETURN_IF_ERROR(Append(*trial, std::move(event)));
  RETURN_IF_ERROR(StoreCheckpoint(*trial, model.step));

  v1::CreateExperimentResponse response;
  *response.mutable_experiment() = ToExperiment(record, submission.grid.specification);
  response.add_trial_ids(grid_trial.id);
  response.set_trial_count(1);
  response.set_pack_count(1);
  return response;
}

}  // namespace lengthwise::server
