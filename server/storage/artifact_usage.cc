#include "server/storage/artifact_usage.h"

#include <filesystem>
#include <system_error>

#include "platform/files.h"

namespace lengthwise::server {

absl::StatusOr<ArtifactUsage> MeasureArtifacts(const std::string& directory) {
  namespace fs = std::filesystem;
  ArtifactUsage usage;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    std::error_code gone;  // deleted since it was listed
    if (entry->is_regular_file(gone) && !gone) {
      const auto size = entry->file_size(gone);
      if (!gone) {
        usage.bytes += static_cast<int64_t>(size);
        if (entry->path().extension() == ".safetensors") ++usage.artifacts;
      }
    }
    entry.increment(error);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return platform::FileError(error.value(), "list", directory);
  }
  return usage;
}

}  // namespace lengthwise::server
