#include "server/coordination/retention.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "platform/log.h"
#include "platform/status_macros.h"
#include "server/coordination/messages.h"

namespace lengthwise::server {
namespace {

// Trials per read.
constexpr int64_t kPage = 10'000;

void LogFailure(const absl::Status& status) {
  if (status.ok()) return;
  platform::LogWarning(
      absl::StrCat("cannot delete files left by an earlier run: ", status.message()));
}

absl::Status KeepNewest(StorageReader& reader, ArtifactStore& artifacts, const TrialRecord& trial,
                        int64_t count) {
  ASSIGN_OR_RETURN(const auto kept, NewestCheckpoints(reader, trial.key, count));
  return artifacts.KeepOnly(trial.experiment_id, trial.id, kept);
}

absl::Status DeleteLeftOf(StorageReader& reader, ArtifactStore& artifacts,
                          const ExperimentRecord& experiment) {
  ASSIGN_OR_RETURN(const std::vector<PackRecord> listed, reader.ListPacks(experiment.key));
  absl::flat_hash_map<int64_t, int64_t> stay;  // for trials that succeeded, by pack
  absl::flat_hash_map<int64_t, int64_t> stay_of_others;
  for (const PackRecord& pack : listed) {
    stay[pack.key] = CheckpointsThatStay(pack, v1::SUCCEEDED);
    stay_of_others[pack.key] = CheckpointsThatStay(pack, v1::FAILED);
  }
  int32_t next = 0;
  while (true) {
    ASSIGN_OR_RETURN(const auto trials, reader.ListTrials(experiment.key, next, {}, kPage));
    for (const TrialRecord& trial : trials) {
      next = trial.index + 1;
      if (!HasEnded(trial.state)) continue;
      const int64_t count = (trial.state == v1::SUCCEEDED ? stay : stay_of_others)[trial.pack];
      ASSIGN_OR_RETURN(const int64_t stored, artifacts.Count(trial.experiment_id, trial.id));
      if (stored <= count) continue;
      LogFailure(KeepNewest(reader, artifacts, trial, count));
    }
    if (static_cast<int64_t>(trials.size()) < kPage) return absl::OkStatus();
  }
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

absl::Status DeleteWhatDoesNotStay(StorageReader& reader, ArtifactStore& artifacts, int64_t key) {
  ASSIGN_OR_RETURN(const std::optional<TrialRecord> trial, reader.FindTrial(key));
  if (!trial.has_value() || !HasEnded(trial->state)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<PackRecord> pack, reader.FindPack(trial->pack));
  return KeepNewest(reader, artifacts, *trial,
                    CheckpointsThatStay(pack.value_or(PackRecord()), trial->state));
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

absl::StatusOr<std::vector<std::string>> DeleteLeftArtifacts(StorageReader& reader,
                                                             ArtifactStore& artifacts) {
  std::vector<std::string> deleted;
  ASSIGN_OR_RETURN(const std::vector<std::string> ids, artifacts.ListExperiments());
  for (const std::string& id : ids) {
    // Artifacts that this database never knew are kept: the database may have been moved away and
    // created again.
    ASSIGN_OR_RETURN(const std::optional<ExperimentRecord> experiment, reader.FindExperiment(id));
    if (experiment.has_value()) {
      RETURN_IF_ERROR(DeleteLeftOf(reader, artifacts, *experiment));
      continue;
    }
    ASSIGN_OR_RETURN(const bool was_deleted, reader.WasDeleted(id));
    if (was_deleted) deleted.push_back(id);
  }
  return deleted;
}

}  // namespace lengthwise::server
