// The clients' commands.
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "server/coordination/engine.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

constexpr int kMaxAnsweredIds = 1000;

int32_t TrialCount(const ExperimentRecord& experiment) {
  const v1::TrialCounts& counts = experiment.counts;
  return counts.queued() + counts.running() + counts.succeeded() + counts.failed() +
         counts.cancelled();
}

absl::Status NoExperiment(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no ", name));
}

v1::CreateExperimentResponse MakeResponse(const ExperimentRecord& record,
                                          const specification::Grid& grid) {
  v1::CreateExperimentResponse response;
  *response.mutable_experiment() = ToExperiment(record, grid.specification);
  absl::flat_hash_set<absl::string_view> packs;
  for (const specification::GridTrial& trial : grid.trials) {
    if (response.trial_ids_size() < kMaxAnsweredIds) response.add_trial_ids(trial.id);
    packs.insert(trial.pack->key);
  }
  response.set_trial_count(static_cast<int32_t>(grid.trials.size()));
  response.set_pack_count(static_cast<int32_t>(packs.size()));
  return response;
}

}  // namespace

absl::StatusOr<std::optional<v1::CreateExperimentResponse>> Engine::FindRepeated(
    const ExperimentRecord& submitted) {
  if (submitted.request_id.empty()) return std::nullopt;
  const absl::StatusOr<std::optional<ExperimentRecord>> found =
      writer_.FindRequest(submitted.request_id);
  if (!found.ok()) return found.status();
  const absl::StatusOr<std::optional<DeletedRequest>> deleted =
      writer_.FindDeletedRequest(submitted.request_id);
  if (!deleted.ok()) return deleted.status();
  if (!found->has_value() && !deleted->has_value()) return std::nullopt;
  const std::string& fingerprint =
      deleted->has_value() ? (*deleted)->request_fingerprint : (*found)->request_fingerprint;
  const std::string created =
      absl::StrCat("request_id: \"", submitted.request_id, "\" created ",
                   ExperimentName(deleted->has_value() ? (*deleted)->experiment_id : (*found)->id));
  if (fingerprint != submitted.request_fingerprint) {
    return absl::AlreadyExistsError(
        absl::StrCat(created, " by another request; use a new request_id"));
  }
  if (deleted->has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(created, ", which was deleted; use a new request_id to create it again"));
  }
  const ExperimentRecord& known = **found;
  // From the store: the experiment may have been extended.
  const auto trials = writer_.ListTrials(known.key, 0, {}, kMaxAnsweredIds);
  if (!trials.ok()) return trials.status();
  const auto packs = writer_.ListPacks(known.key);
  if (!packs.ok()) return packs.status();
  absl::StatusOr<v1::Experiment> experiment = ToExperiment(known, writer_.name());
  if (!experiment.ok()) return experiment.status();
  v1::CreateExperimentResponse response;
  *response.mutable_experiment() = *std::move(experiment);
  for (const TrialRecord& trial : *trials) response.add_trial_ids(trial.id);
  response.set_trial_count(TrialCount(known));
  response.set_pack_count(static_cast<int32_t>(packs->size()));
  return response;
}

absl::StatusOr<v1::CreateExperimentResponse> Engine::CreateExperiment(
    const Submission& submission) {
  ExperimentRecord record = submission.experiment;
  absl::StatusOr<std::optional<v1::CreateExperimentResponse>> repeated = FindRepeated(record);
  if (!repeated.ok()) return repeated.status();
  if (repeated->has_value()) return **std::move(repeated);
  const auto added = static_cast<int64_t>(submission.grid.trials.size());
  if (absl::Status status = CheckQuota(record.owner, added); !status.ok()) return status;
  record.counts.set_queued(static_cast<int32_t>(added));
  if (absl::Status status = writer_.InsertExperiment(record); !status.ok()) return status;
  absl::Status status = InsertTrials(record, submission.grid.trials, 0, {},
                                     absl::StrCat("submitted by ", record.owner));
  if (!status.ok()) return status;
  LENGTHWISE_FAILPOINT("engine.experiment.create");
  return MakeResponse(record, submission.grid);
}

absl::Status Engine::InsertTrials(const ExperimentRecord& experiment,
                                  absl::Span<const specification::GridTrial> trials,
                                  int32_t first_index,
                                  absl::flat_hash_map<std::string, int64_t> packs,
                                  absl::string_view reason) {
  int32_t index = first_index;
  const absl::Time now = clock_.wall();
  std::vector<TrialRecord> records;
  records.reserve(trials.size());
  for (const specification::GridTrial& grid_trial : trials) {
    const auto [pack, is_new] = packs.try_emplace(grid_trial.pack->key, 0);
    if (is_new) {
      PackRecord pack_record = ToPack(*grid_trial.pack);
      pack_record.experiment = experiment.key;
      if (absl::Status status = writer_.InsertPack(pack_record); !status.ok()) return status;
      pack->second = pack_record.key;
    }
    TrialRecord& trial = records.emplace_back();
    trial.experiment = experiment.key;
    trial.index = index++;
    trial.id = grid_trial.id;
    trial.pack = pack->second;
    trial.learning_rate = grid_trial.learning_rate;
    trial.weight_seed = grid_trial.weight_seed;
    trial.data_seed = grid_trial.data_seed;
    trial.state = v1::QUEUED;
    trial.reason = std::string(reason);
    trial.queue_time = now;
  }
  absl::Status status = writer_.InsertTrials(absl::MakeSpan(records));
  if (!status.ok()) return status;
  for (size_t i = 0; i < trials.size(); ++i) {
    scheduler_->Add({.key = records[i].key, .pack = records[i].pack},
                    {.priority = experiment.priority,
                     .owner = experiment.owner,
                     .shape = trials[i].pack->key,
                     .experiment = experiment.id});
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::CreateExperimentResponse> Engine::Preview(const Submission& submission) {
  ExperimentRecord record = submission.experiment;
  record.counts.set_queued(static_cast<int32_t>(submission.grid.trials.size()));
  return MakeResponse(record, submission.grid);
}

absl::StatusOr<v1::ExtendExperimentResponse> Engine::ExtendExperiment(const std::string& id,
                                                                      Extension extension,
                                                                      const MakeExtension& make) {
  absl::StatusOr<std::optional<ExperimentRecord>> found = writer_.FindExperiment(id);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return NoExperiment(ExperimentName(id));
  if ((*found)->specification != extension.base) {
    absl::StatusOr<Extension> anew = make(**found);
    if (!anew.ok()) return anew.status();
    extension = *std::move(anew);
  }
  v1::ExtendExperimentResponse response;
  response.set_added_trials(static_cast<int32_t>(extension.added.size()));
  if (!extension.added.empty()) {
    ExperimentRecord& record = **found;
    absl::Status status = CheckQuota(record.owner, response.added_trials());
    if (!status.ok()) return status;
    const int32_t first_index = TrialCount(record);
    record.specification = extension.specification;
    status = writer_.ExtendExperiment(record, response.added_trials());
    if (!status.ok()) return status;
    const absl::StatusOr<std::vector<PackRecord>> packs = writer_.ListPacks(record.key);
    if (!packs.ok()) return packs.status();
    absl::flat_hash_map<std::string, int64_t> keys;
    for (const PackRecord& pack : *packs) keys.emplace(pack.pack_key, pack.key);
    status =
        InsertTrials(record, extension.added, first_index, std::move(keys), "added with its seed");
    if (!status.ok()) return status;
    effects_.experiments.insert(id);
    effects_.reshaped.insert(id);
    found = writer_.FindExperiment(id);
    if (!found.ok()) return found.status();
  }
  absl::StatusOr<v1::Experiment> experiment = ToExperiment(**found, writer_.name());
  if (!experiment.ok()) return experiment.status();
  *response.mutable_experiment() = *std::move(experiment);
  return response;
}

absl::StatusOr<std::optional<v1::Experiment>> Engine::CancelExperiment(
    const v1::CancelExperimentRequest& request, const std::string& caller, Parts& parts) {
  const absl::StatusOr<std::string> id = ParseExperimentName(request.name());
  if (!id.ok()) return id.status();
  absl::StatusOr<std::optional<ExperimentRecord>> found = writer_.FindExperiment(*id);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return NoExperiment(request.name());
  // What cannot be answered is not begun.
  absl::StatusOr<v1::ExperimentSpecification> specification =
      ToSpecification(**found, writer_.name());
  if (!specification.ok()) return specification.status();
  const std::string& by = caller.empty() ? (*found)->owner : caller;
  const std::string reason =
      request.reason().empty() ? absl::StrCat("cancelled by ", by) : request.reason();
  if (!parts.trials.has_value()) {
    absl::StatusOr<std::vector<int64_t>> trials =
        writer_.ListTrialsInStates((*found)->key, {v1::QUEUED, v1::RUNNING});
    if (!trials.ok()) return trials.status();
    parts.trials = *std::move(trials);
  }
  for (const int64_t trial : parts.Take()) {
    absl::Status status = Record(scheduler_->Cancel(trial, UserActor(by), reason));
    if (!status.ok()) return status;
  }
  if (!parts.AtEnd()) return std::nullopt;
  found = writer_.FindExperiment(*id);
  if (!found.ok()) return found.status();
  return ToExperiment(**found, *std::move(specification));
}

absl::StatusOr<v1::DeleteExperimentResponse> Engine::DeleteExperiment(
    const v1::DeleteExperimentRequest& request) {
  const absl::StatusOr<std::string> id = ParseExperimentName(request.name());
  if (!id.ok()) return id.status();
  absl::StatusOr<std::optional<ExperimentRecord>> found = writer_.FindExperiment(*id);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return NoExperiment(request.name());
  const v1::TrialCounts& counts = (*found)->counts;
  if (counts.queued() + counts.running() > 0) {
    return absl::FailedPreconditionError(absl::StrCat(request.name(), " has ", counts.queued(),
                                                      " queued and ", counts.running(),
                                                      " running trials; cancel it first"));
  }
  LENGTHWISE_FAILPOINT("engine.experiment.delete");
  if (absl::Status status = writer_.DeleteExperiment((*found)->key); !status.ok()) return status;
  if (!(*found)->request_id.empty()) {
    if (absl::Status status = writer_.InsertDeletedRequest(**found); !status.ok()) return status;
  }
  effects_.experiments.insert(*id);
  effects_.reshaped.insert(*id);
  effects_.actions.push_back([this, id = *id] { artifacts_.DeleteExperiment(id).IgnoreError(); });
  return v1::DeleteExperimentResponse();
}

absl::StatusOr<v1::Trial> Engine::CancelTrial(const v1::CancelTrialRequest& request,
                                              const std::string& caller) {
  const absl::StatusOr<TrialPath> path = ParseTrialName(request.name());
  if (!path.ok()) return path.status();
  absl::StatusOr<std::optional<TrialRecord>> found =
      writer_.FindTrial(path->experiment, path->trial);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return NoExperiment(request.name());
  const v1::TrialState state = (*found)->state;
  if (state == v1::SUCCEEDED || state == v1::FAILED) {
    return absl::FailedPreconditionError(
        absl::StrCat(request.name(), " has ended: ", v1::TrialState_Name(state)));
  }
  const int64_t key = (*found)->key;
  const absl::StatusOr<std::optional<PackRecord>> pack = writer_.FindPack((*found)->pack);
  if (!pack.ok()) return pack.status();
  // What cannot be answered is not begun.
  const absl::StatusOr<v1::Trial> before = ToTrial(**found, **pack, writer_.name());
  if (!before.ok()) return before.status();
  if (state != v1::CANCELLED) {
    absl::StatusOr<std::optional<ExperimentRecord>> experiment =
        writer_.FindExperiment(path->experiment);
    if (!experiment.ok()) return experiment.status();
    const std::string& by = caller.empty() ? (*experiment)->owner : caller;
    const std::string reason =
        request.reason().empty() ? absl::StrCat("cancelled by ", by) : request.reason();
    LENGTHWISE_FAILPOINT("engine.trial.cancel");
    absl::Status status = Record(scheduler_->Cancel(key, UserActor(by), reason));
    if (!status.ok()) return status;
  }
  const absl::StatusOr<TrialRecord> trial = GetTrial(key);
  if (!trial.ok()) return trial.status();
  return ToTrial(*trial, **pack, writer_.name());
}

}  // namespace lengthwise::server
