// A backup's manifest.json, described in backup.h.
#ifndef LENGTHWISE_SERVER_STORAGE_BACKUP_MANIFEST_H_
#define LENGTHWISE_SERVER_STORAGE_BACKUP_MANIFEST_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/storage/artifact_store.h"

namespace lengthwise::server {

struct BackupManifest {
  struct Artifact {
    ArtifactId id;
    int64_t size_bytes = 0;
  };

  absl::Time create_time;
  int64_t database_bytes = 0;
  std::string database_sha256;
  std::vector<Artifact> artifacts;
  // The directory of checkpoints that are not part of the backup, and these; empty if all are.
  std::string elsewhere;
  std::vector<Artifact> checkpoints_elsewhere;
};

struct TrialsWithout {
  int64_t count = 0;
  std::string example;  // the path of one's first checkpoint
};

// Returns the trials of whose checkpoints `find` finds none. The checkpoints of a trial must be
// next to each other. Errors of `find`, unless they say that a checkpoint is lost.
absl::StatusOr<TrialsWithout> FindTrialsWithout(
    const std::vector<BackupManifest::Artifact>& checkpoints,
    const std::function<absl::Status(const ArtifactId& id, int64_t size_bytes)>& find);

absl::Status WriteManifest(const std::string& backup, const BackupManifest& manifest);

// NOT_FOUND if there is none; DATA_LOSS if it is damaged or names a file outside of the backup.
absl::StatusOr<BackupManifest> ReadManifest(const std::string& backup);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_BACKUP_MANIFEST_H_
