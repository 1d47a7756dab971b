// Measures the disk space of stored artifacts.
#ifndef LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_
#define LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

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

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_
