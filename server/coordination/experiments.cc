#include "server/coordination/experiments.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {

Experiments::Experiments(Ledger& ledger, Submissions& submissions)
    : ledger_(ledger), store_(ledger.store()), submissions_(submissions) {}

absl::StatusOr<std::optional<v1::Experiment>> Experiments::Cancel(
    const v1::CancelExperimentRequest& request, const std::string& caller, Parts& parts) {
  ASSIGN_OR_RETURN(const ExperimentRecord record, FindExperiment(store_, request.name()));
  // Fail before changing anything if the answer cannot be built.
  ASSIGN_OR_RETURN(v1::ExperimentSpecification specification,
                   ToSpecification(record, store_.name()));
  const std::string& by = caller.empty() ? record.owner : caller;
  const std::string reason =
      request.reason().empty() ? absl::StrCat("cancelled by ", by) : request.reason();
  if (!parts.trials.has_value()) {
    ASSIGN_OR_RETURN(parts.trials,
                     store_.ListTrialsInStates(record.key, {v1::QUEUED, v1::RUNNING}));
  }
  for (const int64_t trial : parts.Take()) {
    RETURN_IF_ERROR(ledger_.Record(ledger_.scheduler().Cancel(trial, UserActor(by), reason)));
  }
  if (!parts.AtEnd()) return std::nullopt;
  ASSIGN_OR_RETURN(const ExperimentRecord cancelled, FindExperiment(store_, request.name()));
  return ToExperiment(cancelled, std::move(specification));
}

absl::StatusOr<std::vector<int64_t>> Experiments::FindEnded(const v1::RetryTrialsRequest& request,
                                                            const ExperimentRecord& experiment,
                                                            const std::string& trial_id) {
  if (trial_id.empty()) {
    std::vector<v1::TrialState> states;
    for (const int state : request.states()) states.push_back(static_cast<v1::TrialState>(state));
    return store_.ListTrialsInStates(experiment.key, states);
  }
  ASSIGN_OR_RETURN(const TrialRecord trial, FindTrial(store_, request.name()));
  std::vector<int64_t> found;
  if (absl::c_linear_search(request.states(), trial.state)) found.push_back(trial.key);
  return found;
}

absl::StatusOr<std::optional<v1::RetryTrialsResponse>> Experiments::RetryTrials(
    const v1::RetryTrialsRequest& request, const std::string& caller, Parts& parts) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseExperimentOrTrialName(request.name()));
  const std::string name = ExperimentName(path.experiment);
  ASSIGN_OR_RETURN(const ExperimentRecord record, FindExperiment(store_, name));
  // Fail before changing anything if the answer cannot be built.
  ASSIGN_OR_RETURN(v1::ExperimentSpecification specification,
                   ToSpecification(record, store_.name()));
  if (!parts.trials.has_value()) {
    ASSIGN_OR_RETURN(std::vector<int64_t> trials, FindEnded(request, record, path.trial));
    RETURN_IF_ERROR(submissions_.CheckQuota(record.owner, static_cast<int64_t>(trials.size())));
    parts.trials = std::move(trials);
  }
  absl::flat_hash_map<int64_t, PackRecord> packs;
  for (const int64_t key : parts.Take()) {
    ASSIGN_OR_RETURN(const TrialRecord trial, ledger_.GetTrial(key));
    // Another command may have retried it since the first part.
    if (!absl::c_linear_search(request.states(), trial.state)) continue;
    const auto [pack, is_new] = packs.try_emplace(trial.pack);
    if (is_new) {
      ASSIGN_OR_RETURN(const std::optional<PackRecord> found, store_.FindPack(trial.pack));
      pack->second = found.value_or(PackRecord());
    }
    const std::string& by = caller.empty() ? record.owner : caller;
    const Decisions decisions = ledger_.scheduler().Retry(
        ToScheduled(trial),
        {.priority = record.priority,
         .owner = record.owner,
         .shape = pack->second.pack_key,
         .experiment = record.id,
         .most = MostInLease(static_cast<int64_t>(pack->second.specification.size()))},
        trial.state, UserActor(by),
        absl::StrCat("retried by ", by, "; it had ",
                     trial.state == v1::FAILED ? "failed" : "been cancelled", ": ", trial.reason));
    RETURN_IF_ERROR(ledger_.Record(decisions));
    parts.changed += static_cast<int32_t>(decisions.trials.size());
  }
  // A summary keeps the results of ended trials, so it must be rebuilt.
  if (!parts.trials->empty()) ledger_.effects().reshaped.insert(record.id);
  if (!parts.AtEnd()) return std::nullopt;
  v1::RetryTrialsResponse response;
  response.set_retried_trials(parts.changed);
  ASSIGN_OR_RETURN(const ExperimentRecord retried, FindExperiment(store_, name));
  *response.mutable_experiment() = ToExperiment(retried, std::move(specification));
  return response;
}

absl::StatusOr<v1::DeleteExperimentResponse> Experiments::Delete(
    const v1::DeleteExperimentRequest& request) {
  ASSIGN_OR_RETURN(const ExperimentRecord record, FindExperiment(store_, request.name()));
  const v1::TrialCounts& counts = record.counts;
  if (UnendedTrials(counts) > 0) {
    return absl::FailedPreconditionError(absl::StrCat(request.name(), " has ", counts.queued(),
                                                      " queued and ", counts.running(),
                                                      " running trials; cancel it first"));
  }
  LENGTHWISE_FAILPOINT("engine.experiment.delete");
  RETURN_IF_ERROR(store_.DeleteExperiment(record.key));
  RETURN_IF_ERROR(store_.InsertSweep({.experiment = record.id}));
  Effects& effects = ledger_.effects();
  effects.experiments.insert(record.id);
  effects.reshaped.insert(record.id);
  effects.log.emplace_back(
      platform::LogLevel::kInfo,
      absl::StrCat("deleted the experiment ", record.id, " of ", record.owner));
  return v1::DeleteExperimentResponse();
}

absl::StatusOr<v1::Experiment> Experiments::ChangeOwner(const v1::ChangeOwnerRequest& request) {
  ASSIGN_OR_RETURN(ExperimentRecord record, FindExperiment(store_, request.name()));
  // Fail before changing anything if the answer cannot be built.
  ASSIGN_OR_RETURN(v1::ExperimentSpecification specification,
                   ToSpecification(record, store_.name()));
  if (record.owner != request.owner()) {
    RETURN_IF_ERROR(submissions_.CheckQuota(request.owner(), UnendedTrials(record.counts)));
    RETURN_IF_ERROR(store_.ChangeOwner(record.key, request.owner()));
    ledger_.scheduler().ChangeOwner(record.id, request.owner());
    ledger_.effects().log.emplace_back(
        platform::LogLevel::kInfo,
        absl::StrCat(record.id, " of ", record.owner, " belongs to ", request.owner()));
    record.owner = request.owner();
  }
  return ToExperiment(record, std::move(specification));
}

absl::StatusOr<v1::Trial> Experiments::CancelTrial(const v1::CancelTrialRequest& request,
                                                   const std::string& caller) {
  ASSIGN_OR_RETURN(const TrialRecord before, FindTrial(store_, request.name()));
  if (before.state == v1::SUCCEEDED || before.state == v1::FAILED) {
    return absl::FailedPreconditionError(
        absl::StrCat(request.name(), " has ended: ", v1::TrialState_Name(before.state)));
  }
  ASSIGN_OR_RETURN(const std::optional<PackRecord> pack, store_.FindPack(before.pack));
  // Fail before changing anything if the answer cannot be built.
  RETURN_IF_ERROR(ToTrial(before, *pack, store_.name()).status());
  if (before.state != v1::CANCELLED) {
    ASSIGN_OR_RETURN(const std::optional<ExperimentRecord> experiment,
                     store_.FindExperiment(before.experiment_id));
    const std::string& by = caller.empty() ? experiment->owner : caller;
    const std::string reason =
        request.reason().empty() ? absl::StrCat("cancelled by ", by) : request.reason();
    LENGTHWISE_FAILPOINT("engine.trial.cancel");
    RETURN_IF_ERROR(ledger_.Record(ledger_.scheduler().Cancel(before.key, UserActor(by), reason)));
  }
  ASSIGN_OR_RETURN(const TrialRecord trial, ledger_.GetTrial(before.key));
  return ToTrial(trial, *pack, store_.name());
}

}  // namespace lengthwise::server
