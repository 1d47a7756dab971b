// Evaluating a stored model again.
#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "server/coordination/engine.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {

absl::StatusOr<Engine::StoredModel> Engine::FindModel(absl::string_view trial_name) {
  const absl::StatusOr<TrialPath> path = ParseTrialName(trial_name);
  if (!path.ok()) return path.status();
  const absl::StatusOr<std::optional<TrialRecord>> found =
      writer_.FindTrial(path->experiment, path->trial);
  if (!found.ok()) return found.status();
  if (!found->has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no ", trial_name));
  }
  const TrialRecord& trial = **found;
  if (trial.state != v1::SUCCEEDED) {
    return absl::FailedPreconditionError(
        absl::StrCat(trial_name, " is ", v1::TrialState_Name(trial.state),
                     "; only the model of a trial that has succeeded can be evaluated"));
  }
  const absl::StatusOr<EventRecord> event = CheckpointEvent(trial);
  if (!event.ok()) return event.status();
  if (event->position == 0) {
    return absl::FailedPreconditionError(absl::StrCat(trial_name, " stored no model"));
  }
  StoredModel model;
  absl::StatusOr<v1::Checkpoint> checkpoint = ToCheckpoint(*event, writer_.name());
  if (!checkpoint.ok()) return checkpoint.status();
  model.checkpoint = *std::move(checkpoint);
  model.step = event->step;
  model.artifact = {
      .experiment = trial.experiment_id, .trial = trial.id, .sha256 = model.checkpoint.sha256()};
  return model;
}

absl::StatusOr<v1::CreateExperimentResponse> Engine::EvaluateTrial(const Submission& submission) {
  ExperimentRecord record = submission.experiment;
  absl::StatusOr<std::optional<v1::CreateExperimentResponse>> repeated = FindRepeated(record);
  if (!repeated.ok()) return repeated.status();
  if (repeated->has_value()) return **std::move(repeated);
  const specification::GridTrial& grid_trial = submission.grid.trials.front();
  const std::string& evaluated = grid_trial.pack->specification.evaluated_trial();
  const absl::StatusOr<StoredModel> model = FindModel(evaluated);
  if (!model.ok()) return model.status();

  if (absl::Status status = CheckQuota(record.owner, 1); !status.ok()) return status;
  record.counts.set_queued(1);
  if (absl::Status status = writer_.InsertExperiment(record); !status.ok()) return status;
  LENGTHWISE_FAILPOINT("engine.evaluation.create");
  // Only now has the copy a name. It is durable before the commit that speaks of it.
  const absl::Status copied =
      artifacts_.Copy(model->artifact, record.id, grid_trial.id, model->step);
  if (!copied.ok()) {
    artifacts_.DeleteExperiment(record.id).IgnoreError();
    if (absl::Status status = writer_.DeleteExperiment(record.key); !status.ok()) return status;
    if (IsLost(copied)) {
      return absl::DataLossError(
          absl::StrCat("the model of ", evaluated, " cannot be used: ", copied.message()));
    }
    return absl::UnavailableError(absl::StrCat("cannot copy the model: ", copied.message()));
  }
  LENGTHWISE_FAILPOINT("engine.evaluation.copied");
  effects_.reversals.push_back(
      [this, id = record.id] { artifacts_.DeleteExperiment(id).IgnoreError(); });

  absl::Status status =
      InsertTrials(record, {grid_trial}, 0, {},
                   absl::StrCat("evaluation of ", evaluated, ", submitted by ", record.owner));
  if (!status.ok()) return status;
  absl::StatusOr<std::optional<TrialRecord>> trial = writer_.FindTrial(record.id, grid_trial.id);
  if (!trial.ok()) return trial.status();
  // As if the trial had been trained up to there: leases, resumption and retention need no more.
  v1::Event event;
  event.set_step(model->step);
  *event.mutable_checkpoint() = model->checkpoint;
  if (status = Append(**trial, std::move(event)); !status.ok()) return status;
  if (status = StoreCheckpoint(**trial, model->step); !status.ok()) return status;

  v1::CreateExperimentResponse response;
  *response.mutable_experiment() = ToExperiment(record, submission.grid.specification);
  response.add_trial_ids(grid_trial.id);
  response.set_trial_count(1);
  response.set_pack_count(1);
  return response;
}

}  // namespace lengthwise::server
