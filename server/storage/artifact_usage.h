// Measures the disk space of stored artifacts, and what is left for them.
#ifndef LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_
#define LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "platform/files.h"

namespace lengthwise::server {

struct ArtifactUsage {
  int64_t artifacts = 0;
  // Including manifests. A hard-linked file counts once per measurement, so a file that two
  // experiments share counts for each of them.
  int64_t bytes = 0;
};

// Measures a directory of the artifact store and everything below it; zero if it does not exist.
// Files created or deleted during the call may or may not count.
absl::StatusOr<ArtifactUsage> MeasureArtifacts(const std::string& directory);

// Space of the file system that a server's data fill up first: the data directory's, or, if a
// smaller share of it is free, that of the directory in which the checkpoints are (`elsewhere` as
// of ArtifactStore, of which an object store does not count). Blocks while that directory's server
// does not answer.
absl::StatusOr<platform::DiskSpace> MeasureFullestDisk(const std::string& data_dir,
                                                       const std::string& elsewhere);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_
