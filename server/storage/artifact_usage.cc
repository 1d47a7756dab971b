#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "platform/files.h"
#include "server/storage/artifact_store.h"

namespace lengthwise::server {

absl::StatusOr<ArtifactUsage> MeasureArtifacts(const std::string& directory) {
  namespace fs = std::filesystem;
  ArtifactUsage usage;
  std::set<ino_t> seen;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    std::error_code gone;  // deleted since it was listed
    if (entry->is_regular_file(gone) && !gone) {
      const auto size = entry->file_size(gone);
      // A file with two names occupies its space once.
      struct stat status = {};
      const bool counted = !gone && stat(entry->path().c_str(), &status) == 0 &&
                           status.st_nlink > 1 && !seen.insert(status.st_ino).second;
      if (!gone && !counted) {
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

std::optional<platform::DiskSpace> MeasureDiskElsewhere(const std::string& elsewhere) {
  if (!absl::StartsWith(elsewhere, "/")) return std::nullopt;
  auto disk = platform::GetDiskSpace(elsewhere);
  if (!disk.ok()) return std::nullopt;
  return *disk;
}

const platform::DiskSpace& FullerDisk(const platform::DiskSpace& a, const platform::DiskSpace& b) {
  const auto share = [](const platform::DiskSpace& disk) {
    return static_cast<double>(disk.free_bytes) / static_cast<double>(disk.size_bytes);
  };
  return share(b) < share(a) ? b : a;
}

}  // namespace lengthwise::server
