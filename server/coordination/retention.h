// Retention: which artifacts are kept, and the deletion of those that are not.
#ifndef LENGTHWISE_SERVER_COORDINATION_RETENTION_H_
#define LENGTHWISE_SERVER_COORDINATION_RETENTION_H_

#include <cstdint>
#include <functional>
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

// Deletes those of the record's artifacts that nothing needs, according to the store at the time of
// the call: the trial may have been retried since, or have resumed from such a checkpoint. Keeps
// what an unended trial of a later attempt may have uploaded; its end deletes the rest. ABORTED if
// an artifact is being stored, or if `goes_on` no longer holds: call it again later.
absl::Status Sweep(Storage& storage, ArtifactStore& artifacts, const SweepRecord& sweep,
                   const std::function<bool()>& goes_on);

// Looks for checkpoints from which unended trials would resume and that the store did not list.
// Call it at the start, with a store that may list an object late.
absl::Status FindUnlisted(StorageReader& reader, ArtifactStore& artifacts);

// Finds artifacts that no record names, such as uploads of a worker that died: of deleted
// experiments, and of ended trials that have more than most keep. Leaves out artifacts of
// experiments that the store has never known: the database may have been moved away and created
// again.
absl::StatusOr<std::vector<SweepRecord>> FindLeftArtifacts(StorageReader& reader,
                                                           ArtifactStore& artifacts);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_RETENTION_H_
