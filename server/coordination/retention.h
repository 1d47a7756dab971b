// Retention: which checkpoints of an ended trial are kept.
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

// Number of checkpoints, the newest ones, that are kept of a trial of `pack` that ended in `state`.
// For a pack with a damaged specification, the maximum.
int64_t CheckpointsThatStay(const PackRecord& pack, v1::TrialState state);

// SHA-256 of a trial's newest checkpoints, newest first.
absl::StatusOr<std::vector<std::string>> NewestCheckpoints(StorageReader& reader, int64_t trial,
                                                           int64_t count);

// Deletes the artifacts that an ended trial does not keep, according to the store at the time of
// the call. No-op if the trial has not ended, or was retried: its uploads may not be in the store
// yet.
absl::Status DeleteWhatDoesNotStay(StorageReader& reader, ArtifactStore& artifacts, int64_t trial);

// Looks for checkpoints from which unended trials would resume and that the store did not list.
// Call it at the start, with a store that may list an object late.
absl::Status FindUnlisted(StorageReader& reader, ArtifactStore& artifacts);

// Deletes artifacts left behind by a server that died between a commit and its deletions:
// checkpoints that ended trials do not keep. Returns the ids of deleted experiments that still have
// artifacts; the caller deletes those in parts. Keeps artifacts of experiments that the store has
// never known. Logs and keeps a file that cannot be deleted.
absl::StatusOr<std::vector<std::string>> DeleteLeftArtifacts(StorageReader& reader,
                                                             ArtifactStore& artifacts);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_RETENTION_H_
