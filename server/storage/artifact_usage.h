// How much stored checkpoints and models take on the disk.
#ifndef LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_
#define LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace lengthwise::server {

struct ArtifactUsage {
  int64_t artifacts = 0;
  // With their manifests. A file that two experiments share counts for each.
  int64_t bytes = 0;
};

// Of a directory of the artifact store and all below it; nothing for one that does not exist. What
// comes or goes meanwhile may or may not count.
absl::StatusOr<ArtifactUsage> MeasureArtifacts(const std::string& directory);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_ARTIFACT_USAGE_H_
