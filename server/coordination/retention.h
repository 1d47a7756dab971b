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

// Deletes what is left of experiments that were deleted, and checkpoints that did not stay of
// trials that have ended: a server that died between a commit and what follows it leaves them.
// What the store does not know is not touched. A file that cannot be deleted is logged and stays.
absl::Status DeleteLeftArtifacts(StorageReader& reader, ArtifactStore& artifacts);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_RETENTION_H_
