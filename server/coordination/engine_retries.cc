// Trials that have failed, or were cancelled, and are wanted after all.
#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "server/coordination/engine.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {

absl::StatusOr<std::vector<int64_t>> Engine::FindEnded(const v1::RetryTrialsRequest& request,
                                                       const ExperimentRecord& experiment,
                                                       const std::string& trial_id) {
  if (trial_id.empty()) {
    std::vector<v1::TrialState> states;
    for (const int state : request.states()) states.push_back(static_cast<v1::TrialState>(state));
    return writer_.ListTrialsInStates(experiment.key, states);
  }
  ASSIGN_OR_RETURN(const std::optional<TrialRecord> trial,
                   writer_.FindTrial(experiment.id, trial_id));
  if (!trial.has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no ", request.name()));
  }
  std::vector<int64_t> found;
  if (absl::c_linear_search(request.states(), trial->state)) found.push_back(trial->key);
  return found;
}

absl::StatusOr<std::optional<v1::RetryTrialsResponse>> Engine::RetryTrials(
    const v1::RetryTrialsRequest& request, const std::string& caller, Parts& parts) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseExperimentOrTrialName(request.name()));
  for (const int state : request.states()) {
    if (state == v1::FAILED || state == v1::CANCELLED) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("states: got ", state, ", accepted are FAILED and CANCELLED"));
  }
  if (request.states().empty()) {
    return absl::InvalidArgumentError("states: is empty, accepted are FAILED and CANCELLED");
  }
  absl::StatusOr<std::optional<ExperimentRecord>> experiment =
      writer_.FindExperiment(path.experiment);
  if (!experiment.ok()) return experiment.status();
  if (!experiment->has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no ", request.name()));
  }
  const ExperimentRecord& record = **experiment;
  // What cannot be answered is not begun.
  ASSIGN_OR_RETURN(v1::ExperimentSpecification specification,
                   ToSpecification(record, writer_.name()));
  if (!parts.trials.has_value()) {
    ASSIGN_OR_RETURN(std::vector<int64_t> trials, FindEnded(request, record, path.trial));
    RETURN_IF_ERROR(CheckQuota(record.owner, static_cast<int64_t>(trials.size())));
    parts.trials = std::move(trials);
  }
  absl::flat_hash_map<int64_t, std::string> pack_keys;
  for (const int64_t key : parts.Take()) {
    ASSIGN_OR_RETURN(const TrialRecord trial, GetTrial(key));
    // Another may have retried it since the first part.
    if (!absl::c_linear_search(request.states(), trial.state)) continue;
    const auto [pack_key, is_new] = pack_keys.try_emplace(trial.pack);
    if (is_new) {
      ASSIGN_OR_RETURN(const std::optional<PackRecord> pack, writer_.FindPack(trial.pack));
      pack_key->second = pack.value_or(PackRecord()).pack_key;
    }
    const Decisions decisions =
        Retry(trial, record, pack_key->second, caller.empty() ? record.owner : caller);
    RETURN_IF_ERROR(Record(decisions));
    parts.changed += static_cast<int32_t>(decisions.trials.size());
  }
  // A summary keeps what a trial ended with.
  if (!parts.trials->empty()) effects_.reshaped.insert(record.id);
  if (!parts.AtEnd()) return std::nullopt;
  v1::RetryTrialsResponse response;
  response.set_retried_trials(parts.changed);
  experiment = writer_.FindExperiment(path.experiment);
  if (!experiment.ok()) return experiment.status();
  *response.mutable_experiment() = ToExperiment(**experiment, std::move(specification));
  return response;
}

}  // namespace lengthwise::server
