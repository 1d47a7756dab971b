#include "server/coordination/summaries.h"

#include <limits>
#include <utility>

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

}  // namespace

absl::StatusOr<Summaries::Change> Summaries::ReadChange(StorageReader& reader, TrialRecord trial) {
  Change change;
  change.trial = std::move(trial);
  if (change.trial.state != v1::SUCCEEDED) return change;
  ASSIGN_OR_RETURN(change.accuracies, FinalAccuracies(reader, change.trial.key));
  ASSIGN_OR_RETURN(change.outcome, ToOutcome(change.trial, reader.name()));
  return change;
}

void Summaries::Apply(const Change& change, ExperimentSummary& summary) {
  const TrialRecord& trial = change.trial;
  if (trial.state != v1::SUCCEEDED) return summary.SetState(trial.index, trial.state);
  summary.Succeed(trial.index, change.accuracies, change.outcome);
}

absl::StatusOr<v1::SummarizeExperimentResponse> Summaries::Summarize(
    const std::string& experiment_id, absl::string_view select) {
  const std::shared_ptr<Held> held = FindOrAdd(experiment_id);
  if (absl::Status status = MakeReady(experiment_id, *held); !status.ok()) {
    Forget(experiment_id);
    return status;
  }
  platform::MutexLock lock(held->mutex);
  return held->summary.Summarize(select);
}

std::shared_ptr<Summaries::Held> Summaries::Find(const std::string& experiment_id) {
  platform::MutexLock lock(mutex_);
  const auto found = held_.find(experiment_id);
  return found == held_.end() ? nullptr : found->second;
}

std::shared_ptr<Summaries::Held> Summaries::FindOrAdd(const std::string& experiment_id) {
  platform::MutexLock lock(mutex_);
  std::shared_ptr<Held>& held = held_[experiment_id];
  if (held == nullptr) {
    held = std::make_shared<Held>();
  } else {
    asked_.remove(experiment_id);
  }
  asked_.push_front(experiment_id);
  const std::shared_ptr<Held> result = held;
  if (asked_.size() > kMostHeld) {
    held_.erase(asked_.back());
    asked_.pop_back();
  }
  return result;
}

absl::Status Summaries::MakeReady(const std::string& experiment_id, Held& held) {
  platform::MutexLock build_lock(held.build_mutex);
  {
    platform::MutexLock lock(held.mutex);
    if (held.ready) return absl::OkStatus();
  }
  // The summary was cached before this reads, so no commit is missed. A commit that Build has
  // already read changes nothing when it is applied again.
  ASSIGN_OR_RETURN(ExperimentSummary built, Build(experiment_id));
  platform::MutexLock lock(held.mutex);
  held.summary = std::move(built);
  for (const Change& change : held.missed) Apply(change, held.summary);
  held.missed.clear();
  held.ready = true;
  return absl::OkStatus();
}

absl::StatusOr<ExperimentSummary> Summaries::Build(const std::string& experiment_id) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StorageReader> reader, storage_.Read());
  ASSIGN_OR_RETURN(const ExperimentRecord experiment,
                   FindExperiment(*reader, ExperimentName(experiment_id)));
  ASSIGN_OR_RETURN(const auto packs, reader->ListPacks(experiment.key));
  absl::flat_hash_map<int64_t, ExperimentSummary::Trial> by_pack;
  for (const PackRecord& pack : packs) {
    ASSIGN_OR_RETURN(const v1::TrialSpecification specification,
                     ToSharedSpecification(pack, reader->name()));
    ExperimentSummary::Trial& shared = by_pack[pack.key];
    shared.task = pack.task;
    shared.network = pack.network;
    shared.encoding = pack.encoding;
    shared.steps = specification.training().steps();
    shared.select_unseen = specification.evaluation().select() == "unseen";
    const tasks::TaskEntry* task = tasks::FindTask(specification.task().name());
    shared.compared_by_loss = task != nullptr && task->compared_by_loss;
  }
  ASSIGN_OR_RETURN(auto trials,
                   reader->ListTrials(experiment.key, 0, {}, std::numeric_limits<int64_t>::max()));
  ExperimentSummary summary;
  for (TrialRecord& record : trials) {
    ExperimentSummary::Trial trial = by_pack[record.pack];
    trial.index = record.index;
    trial.id = record.id;
    trial.learning_rate = record.learning_rate;
    summary.Add(std::move(trial));
    ASSIGN_OR_RETURN(const Change change, ReadChange(*reader, std::move(record)));
    Apply(change, summary);
  }
  return summary;
}

absl::StatusOr<std::vector<Summaries::Change>> Summaries::ReadChanges(
    const absl::btree_set<int64_t>& trials) {
  ASSIGN_OR_RETURN(const std::unique_ptr<StorageReader> reader, storage_.Read());
  std::vector<Change> changes;
  for (const int64_t key : trials) {
    ASSIGN_OR_RETURN(auto trial, reader->FindTrial(key));
    if (!trial.has_value()) continue;  // deleted in the same commit
    ASSIGN_OR_RETURN(Change change, ReadChange(*reader, *std::move(trial)));
    changes.push_back(std::move(change));
  }
  return changes;
}

void Summaries::Update(const std::string& experiment_id, const absl::btree_set<int64_t>& trials) {
  const std::shared_ptr<Held> held = Find(experiment_id);
  if (held == nullptr) return;
  if (trials.size() > kMostFollowed) return Forget(experiment_id);
  absl::StatusOr<std::vector<Change>> changes = ReadChanges(trials);
  // A summary that missed a change would stay wrong.
  if (!changes.ok()) return Forget(experiment_id);
  platform::MutexLock lock(held->mutex);
  for (Change& change : *changes) {
    if (held->ready) {
      Apply(change, held->summary);
    } else {
      held->missed.push_back(std::move(change));
    }
  }
}

void Summaries::Forget(const std::string& experiment_id) {
  platform::MutexLock lock(mutex_);
  held_.erase(experiment_id);
  asked_.remove(experiment_id);
}

void Summaries::ForgetAll() {
  platform::MutexLock lock(mutex_);
  held_.clear();
  asked_.clear();
}

}  // namespace lengthwise::server
