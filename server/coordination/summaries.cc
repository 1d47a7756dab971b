#include "server/coordination/summaries.h"

#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "platform/status_macros.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"
#include "tasks/catalogue.h"

namespace lengthwise::server {
namespace {

// The last evaluation of a trial that succeeded. The store no longer has evaluations of earlier
// attempts after their last checkpoint.
absl::StatusOr<v1::LengthAccuracies> FinalAccuracies(StorageReader& reader, int64_t trial) {
  ASSIGN_OR_RETURN(const std::vector<EventRecord> events,
                   reader.NewestEvents(trial, v1::Event::kLengthAccuracies, 1));
  if (events.empty()) return v1::LengthAccuracies();
  ASSIGN_OR_RETURN(v1::Event event, ReadEvent(reader, events.front(), "", ""));
  if (!event.length_accuracies().final()) return v1::LengthAccuracies();
  return std::move(*event.mutable_length_accuracies());
}

// Takes the trial into the summary as it is now in the store.
absl::Status Apply(StorageReader& reader, const TrialRecord& trial, ExperimentSummary& summary) {
  if (trial.state != v1::SUCCEEDED) {
    summary.SetState(trial.index, trial.state);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const v1::LengthAccuracies accuracies, FinalAccuracies(reader, trial.key));
  ASSIGN_OR_RETURN(const v1::Outcome outcome, ToOutcome(trial, reader.name()));
  summary.Succeed(trial.index, accuracies, outcome);
  return absl::OkStatus();
}

absl::StatusOr<ExperimentSummary> Build(StorageReader& reader, const std::string& experiment_id) {
  ASSIGN_OR_RETURN(const ExperimentRecord experiment,
                   FindExperiment(reader, ExperimentName(experiment_id)));
  ASSIGN_OR_RETURN(const auto packs, reader.ListPacks(experiment.key));
  absl::flat_hash_map<int64_t, ExperimentSummary::Trial> by_pack;
  for (const PackRecord& pack : packs) {
    ASSIGN_OR_RETURN(const v1::TrialSpecification specification,
                     ToSharedSpecification(pack, reader.name()));
    ExperimentSummary::Trial& shared = by_pack[pack.key];
    shared.task = pack.task;
    shared.network = pack.network;
    shared.encoding = pack.encoding;
    shared.steps = specification.training().steps();
    shared.select_unseen = specification.evaluation().select() == "unseen";
    const tasks::TaskEntry* task = tasks::FindTask(specification.task().name());
    shared.compared_by_loss = task != nullptr && task->compared_by_loss;
  }
  ASSIGN_OR_RETURN(const auto trials,
                   reader.ListTrials(experiment.key, 0, {}, std::numeric_limits<int64_t>::max()));
  ExperimentSummary summary;
  for (const TrialRecord& record : trials) {
    ExperimentSummary::Trial trial = by_pack[record.pack];
    trial.index = record.index;
    trial.id = record.id;
    trial.learning_rate = record.learning_rate;
    summary.Add(std::move(trial));
    RETURN_IF_ERROR(Apply(reader, record, summary));
  }
  return summary;
}

}  // namespace

absl::StatusOr<v1::SummarizeExperimentResponse> Summaries::Summarize(
    const std::string& experiment_id, absl::string_view select) {
  const std::shared_ptr<Held> held = FindOrAdd(experiment_id);
  platform::MutexLock reading(held->mutex);
  absl::btree_set<int64_t> changed;
  {
    // Before the snapshot is taken, which therefore has these changes.
    platform::MutexLock lock(mutex_);
    changed.swap(held->changed);
  }
  if (absl::Status status = Refresh(experiment_id, changed, held->summary); !status.ok()) {
    held->summary.reset();  // queries that wait for the mutex build it again
    Forget(experiment_id);
    return status;
  }
  return held->summary->Summarize(select);
}

std::shared_ptr<Summaries::Held> Summaries::FindOrAdd(const std::string& experiment_id) {
  platform::MutexLock lock(mutex_);
  const auto found = absl::c_find_if(
      held_, [&](const auto& held) { return held->experiment_id == experiment_id; });
  if (found != held_.end()) {
    held_.splice(held_.begin(), held_, found);
  } else {
    held_.push_front(std::make_shared<Held>());
    held_.front()->experiment_id = experiment_id;
    if (held_.size() > kMostHeld) held_.pop_back();
  }
  return held_.front();
}

absl::Status Summaries::Refresh(const std::string& experiment_id,
                                const absl::btree_set<int64_t>& changed,
                                std::optional<ExperimentSummary>& summary) {
  if (summary.has_value() && changed.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<StorageReader> reader, storage_.Read());
  if (!summary.has_value()) {
    ASSIGN_OR_RETURN(summary, Build(*reader, experiment_id));
    return absl::OkStatus();
  }
  for (const int64_t key : changed) {
    ASSIGN_OR_RETURN(const auto trial, reader->FindTrial(key));
    if (!trial.has_value()) continue;  // deleted since
    RETURN_IF_ERROR(Apply(*reader, *trial, *summary));
  }
  return absl::OkStatus();
}

void Summaries::Update(const std::string& experiment_id, const absl::btree_set<int64_t>& trials) {
  platform::MutexLock lock(mutex_);
  for (const std::shared_ptr<Held>& held : held_) {
    if (held->experiment_id == experiment_id) held->changed.insert(trials.begin(), trials.end());
  }
}

void Summaries::Forget(const std::string& experiment_id) {
  platform::MutexLock lock(mutex_);
  held_.remove_if([&](const auto& held) { return held->experiment_id == experiment_id; });
}

void Summaries::ForgetAll() {
  platform::MutexLock lock(mutex_);
  held_.clear();
}

}  // namespace lengthwise::server
