// What stays of a trial's checkpoints when it has ended.
#ifndef LENGTHWISE_SERVER_COORDINATION_RETENTION_H_
#define LENGTHWISE_SERVER_COORDINATION_RETENTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/artifact_store.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// How many checkpoints stay of a trial of `pack` that has ended in `state`: the newest ones. Of a
// pack whose specification is damaged, the most.
int64_t CheckpointsThatStay(const PackRecord& pack, v1::TrialState state);

// SHA-256 of a trial's newest checkpoints, the newest first.
absl::StatusOr<std::vector<std::string>> NewestCheckpoints(StorageReader& reader, int64_t trial,
                                                           int64_t count);

// Deletes what does not stay of a trial that has ended, as the store has it when this runs. Nothing
// of one that has not ended, or not any more: what it uploads is not known yet.
absl::Status DeleteWhatDoesNotStay(StorageReader& reader, ArtifactStore& artifacts, int64_t trial);

// A server that died between a commit and what follows it leaves artifacts. Deletes the checkpoints
// of ended trials that should not stay, and returns the ids of deleted experiments that still have
// artifacts: the caller deletes those in parts. Keeps what the store does not know. Logs a file
// that cannot be deleted, and keeps it.
absl::StatusOr<std::vector<std::string>> DeleteLeftArtifacts(StorageReader& reader,
                                                             ArtifactStore& artifacts);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_RETENTION_H_
