#include "server/coordination/retention.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "platform/status_macros.h"
#include "server/coordination/messages.h"

namespace lengthwise::server {
namespace {

// Trials per read.
constexpr int64_t kPage = 10'000;

// Appends the ended trials that have more artifacts than most keep.
absl::Status FindLeftOf(StorageReader& reader, ArtifactStore& artifacts,
                        const ExperimentRecord& experiment, std::vector<SweepRecord>& left) {
  int32_t next = 0;
  while (true) {
    ASSIGN_OR_RETURN(const auto trials, reader.ListTrials(experiment.key, next, {}, kPage));
    for (const TrialRecord& trial : trials) {
      next = trial.index + 1;
      if (!HasEnded(trial.state)) continue;
      // Sweep knows how many the specification keeps.
      const int64_t usual = trial.checkpoint_step == 0     ? 0
                            : trial.state == v1::SUCCEEDED ? 1
                                                           : kKeptCheckpoints;
      ASSIGN_OR_RETURN(const auto stored, artifacts.List(trial.experiment_id, trial.id));
      if (static_cast<int64_t>(stored.size()) <= usual) continue;
      left.push_back({.experiment = trial.experiment_id, .trial = trial.id});
    }
    if (static_cast<int64_t>(trials.size()) < kPage) return absl::OkStatus();
  }
}

// True if neither the trial nor a later attempt of it needs the artifact.
absl::StatusOr<bool> IsUnneeded(StorageReader& reader, const SweepRecord& sweep,
                                const std::string& sha256) {
  ASSIGN_OR_RETURN(const auto trial, reader.FindTrial(sweep.experiment, sweep.trial));
  if (!trial.has_value()) return false;  // the experiment's own record deletes it
  int64_t kept = kKeptCheckpoints;
  if (HasEnded(trial->state) && trial->checkpoint_step == 0) {
    kept = 0;
  } else if (HasEnded(trial->state)) {
    ASSIGN_OR_RETURN(const auto pack, reader.FindPack(trial->pack));
    kept = CheckpointsThatStay(pack.value_or(PackRecord()), trial->state);
  } else if (sweep.sha256.empty() || trial->attempt != sweep.attempt) {
    return false;
  }
  ASSIGN_OR_RETURN(const auto newest, NewestCheckpoints(reader, trial->key, kept));
  return !absl::c_linear_search(newest, sha256);
}

}  // namespace

int64_t CheckpointsThatStay(const PackRecord& pack, v1::TrialState state) {
  const auto specification = ToSharedSpecification(pack, "");
  // Without a readable specification, keep what the user may want.
  if (!specification.ok()) return kKeptCheckpoints;
  if (specification->keep() == "nothing") return 0;
  // A complete model needs one checkpoint. A trial that failed or was cancelled may be retried, and
  // falls back to the previous checkpoint if the newest is damaged.
  return specification->keep() == "weights" && state == v1::SUCCEEDED ? 1 : kKeptCheckpoints;
}

absl::StatusOr<std::vector<std::string>> NewestCheckpoints(StorageReader& reader, int64_t trial,
                                                           int64_t count) {
  ASSIGN_OR_RETURN(const auto newest, reader.NewestEvents(trial, v1::Event::kCheckpoint, count));
  std::vector<std::string> sha256s;
  for (const EventRecord& checkpoint : newest) {
    ASSIGN_OR_RETURN(const auto message, ToCheckpoint(checkpoint, reader.name()));
    sha256s.push_back(message.sha256());
  }
  return sha256s;
}

absl::Status Sweep(Storage& storage, ArtifactStore& artifacts, const SweepRecord& sweep,
                   const std::function<bool()>& goes_on) {
  if (sweep.trial.empty()) {
    return artifacts.DeleteExperiment(sweep.experiment, [&]() -> absl::StatusOr<bool> {
      if (!goes_on()) return absl::AbortedError("the deletion goes on later");
      ASSIGN_OR_RETURN(const auto reader, storage.Read());
      ASSIGN_OR_RETURN(const auto experiment, reader->FindExperiment(sweep.experiment));
      return !experiment.has_value();
    });
  }
  std::vector<std::string> sha256s = {sweep.sha256};
  if (sweep.sha256.empty()) {
    ASSIGN_OR_RETURN(sha256s, artifacts.List(sweep.experiment, sweep.trial));
  }
  absl::Status status;
  for (const std::string& sha256 : sha256s) {
    const absl::Status deleted =
        artifacts.Delete({.experiment = sweep.experiment, .trial = sweep.trial, .sha256 = sha256},
                         [&]() -> absl::StatusOr<bool> {
                           ASSIGN_OR_RETURN(const auto reader, storage.Read());
                           return IsUnneeded(*reader, sweep, sha256);
                         });
    status.Update(deleted);
    // Another record of the trial may be looking at this one.
    if (!deleted.ok() && !absl::IsAborted(deleted)) return deleted;
  }
  return status;
}

absl::Status FindUnlisted(StorageReader& reader, ArtifactStore& artifacts) {
  std::vector<TrialRecord> resumable;
  RETURN_IF_ERROR(reader.ForEachUnendedTrial([&](const TrialRecord& trial, const TrialPlacement&) {
    if (trial.checkpoint_step > 0) resumable.push_back(trial);
  }));
  for (const TrialRecord& trial : resumable) {
    const auto newest = NewestCheckpoints(reader, trial.key, kKeptCheckpoints);
    if (!newest.ok()) continue;  // a damaged row; the trial's next lease reports it
    for (const std::string& sha256 : *newest) {
      const ArtifactId id = {
          .experiment = trial.experiment_id, .trial = trial.id, .sha256 = sha256};
      if (!absl::IsNotFound(artifacts.VerifyQuickly(id, 0, 0))) continue;
      const absl::Status found = artifacts.Find(id);
      if (!found.ok() && !IsLost(found)) return found;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SweepRecord>> FindLeftArtifacts(StorageReader& reader,
                                                           ArtifactStore& artifacts) {
  std::vector<SweepRecord> left;
  ASSIGN_OR_RETURN(const std::vector<std::string> ids, artifacts.ListExperiments());
  for (const std::string& id : ids) {
    ASSIGN_OR_RETURN(const std::optional<ExperimentRecord> experiment, reader.FindExperiment(id));
    if (experiment.has_value()) {
      RETURN_IF_ERROR(FindLeftOf(reader, artifacts, *experiment, left));
      continue;
    }
    ASSIGN_OR_RETURN(const bool was_deleted, reader.WasDeleted(id));
    if (was_deleted) left.push_back({.experiment = id});
  }
  return left;
}

}  // namespace lengthwise::server
