// Trials that have failed, or were cancelled, and are wanted after all.
#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "server/coordination/engine.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {

absl::StatusOr<std::vector<TrialRecord>> Engine::FindEnded(const v1::RetryTrialsRequest& request,
                                                           const ExperimentRecord& experiment,
                                                           const std::string& trial_id) {
  std::vector<TrialRecord> ended;
  if (!trial_id.empty()) {
    absl::StatusOr<std::optional<TrialRecord>> trial = writer_.FindTrial(experiment.id, trial_id);
    if (!trial.ok()) return trial.status();
    if (!trial->has_value()) {
      return absl::NotFoundError(absl::StrCat("there is no ", request.name()));
    }
    const v1::TrialState state = (*trial)->state;
    const bool wanted = std::count(request.states().begin(), request.states().end(), state) > 0;
    if (wanted) ended.push_back(**std::move(trial));
    return ended;
  }
  for (const v1::TrialState state : {v1::FAILED, v1::CANCELLED}) {
    if (std::count(request.states().begin(), request.states().end(), state) == 0) continue;
    auto trials = writer_.ListTrials(experiment.key, 0, {.state = state},
                                     std::numeric_limits<int64_t>::max());
    if (!trials.ok()) return trials.status();
    std::move(trials->begin(), trials->end(), std::back_inserter(ended));
  }
  return ended;
}

absl::StatusOr<v1::RetryTrialsResponse> Engine::RetryTrials(const v1::RetryTrialsRequest& request,
                                                            const std::string& caller) {
  const absl::StatusOr<TrialPath> path = ParseExperimentOrTrialName(request.name());
  if (!path.ok()) return path.status();
  for (const int state : request.states()) {
    if (state == v1::FAILED || state == v1::CANCELLED) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("states: got ", state, ", accepted are FAILED and CANCELLED"));
  }
  if (request.states().empty()) {
    return absl::InvalidArgumentError("states: is empty, accepted are FAILED and CANCELLED");
  }
  absl::StatusOr<std::optional<ExperimentRecord>> experiment =
      writer_.FindExperiment(path->experiment);
  if (!experiment.ok()) return experiment.status();
  if (!experiment->has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no ", request.name()));
  }
  const ExperimentRecord& record = **experiment;
  // What cannot be answered is not begun.
  absl::StatusOr<v1::ExperimentSpecification> specification =
      ToSpecification(record, writer_.name());
  if (!specification.ok()) return specification.status();
  const auto trials = FindEnded(request, record, path->trial);
  if (!trials.ok()) return trials.status();
  absl::flat_hash_map<int64_t, std::string> pack_keys;
  if (!trials->empty()) {
    const auto packs = writer_.ListPacks(record.key);
    if (!packs.ok()) return packs.status();
    for (const PackRecord& pack : *packs) pack_keys.emplace(pack.key, pack.pack_key);
  }
  absl::Status quota = CheckQuota(record.owner, static_cast<int64_t>(trials->size()));
  if (!quota.ok()) return quota;
  v1::RetryTrialsResponse response;
  for (const TrialRecord& trial : *trials) {
    const Decisions decisions =
        Retry(trial, record, pack_keys[trial.pack], caller.empty() ? record.owner : caller);
    if (absl::Status status = Record(decisions); !status.ok()) return status;
    response.set_retried_trials(response.retried_trials() +
                                static_cast<int32_t>(decisions.trials.size()));
  }
  // A summary keeps what a trial ended with.
  if (!trials->empty()) effects_.reshaped.insert(record.id);
  experiment = writer_.FindExperiment(path->experiment);
  if (!experiment.ok()) return experiment.status();
  *response.mutable_experiment() = ToExperiment(**experiment, *std::move(specification));
  return response;
}

}  // namespace lengthwise::server
