// Measures the disk space of stored artifacts, and what is left for them.
#ifndef LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_
#define LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "platform/files.h"

namespace lengthwise::server {

struct ArtifactUsage {
  int64_t artifacts = 0;
  // A hard-linked file counts once per measurement, so a file that two experiments share counts for
  // each of them.
  int64_t bytes = 0;
};

// Measures a directory of the artifact store and everything below it; zero if it does not exist.
// Files created or deleted during the call may or may not count.
absl::StatusOr<ArtifactUsage> MeasureArtifacts(const std::string& directory);

// Returns the space of the directory in which the checkpoints are (`elsewhere` as
// ArtifactStore::elsewhere). nullopt for the data directory or an object store, and while the
// directory is not mounted. Blocks while the directory's file server does not answer.
std::optional<platform::DiskSpace> MeasureDiskElsewhere(const std::string& elsewhere);

// Returns the one of which the smaller share is free.
const platform::DiskSpace& FullerDisk(const platform::DiskSpace& a, const platform::DiskSpace& b);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_
