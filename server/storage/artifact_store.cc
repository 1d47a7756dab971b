#include "server/storage/artifact_store.h"

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "server/storage/resource_id.h"

namespace lengthwise::server {
namespace {

// Maximum length of a file name in bytes.
constexpr size_t kMaxFileName = 255;

// Name of an id's directory: the id, or the beginning and the hash of an id that is too long for a
// file name. No id contains "~", so the two kinds cannot collide.
std::string DirectoryName(absl::string_view id) {
  if (id.size() <= kMaxFileName) return std::string(id);
  const std::string hash = platform::Sha256Hex(id);
  return absl::StrCat(id.substr(0, kMaxFileName - 1 - hash.size()), "~", hash);
}

}  // namespace

std::string ManifestPath(absl::string_view artifact) {
  return absl::StrCat(artifact.substr(0, artifact.rfind('.')), ".json");
}

bool IsLost(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) ||
         absl::IsInvalidArgument(status);  // no artifact can have such a name
}

absl::StatusOr<ArtifactUsage> MeasureArtifacts(const std::string& directory) {
  namespace fs = std::filesystem;
  ArtifactUsage usage;
  std::set<ino_t> seen;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    struct stat status;
    if (stat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    // A file with two names occupies its space once.
    if (status.st_nlink > 1 && !seen.insert(status.st_ino).second) continue;
    usage.bytes += status.st_size;
    if (entry->path().extension() == ".safetensors") ++usage.artifacts;
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

absl::StatusOr<std::string> ArtifactDirectory(const std::string& root, absl::string_view experiment,
                                              std::optional<absl::string_view> trial) {
  const std::string below = trial.has_value() ? absl::StrCat("/", *trial) : "";
  if (!IsResourceId(experiment) || (trial.has_value() && !IsResourceId(*trial))) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", experiment, below, "\" cannot name a directory of artifacts"));
  }
  const std::string directory = absl::StrCat(root, "/", DirectoryName(experiment));
  return trial.has_value() ? absl::StrCat(directory, "/", DirectoryName(*trial)) : directory;
}

absl::StatusOr<std::string> ArtifactPath(const std::string& root, const ArtifactId& id) {
  if (!platform::IsSha256Hex(id.sha256)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sha256: \"", id.sha256, "\" is not 64 lower-case hexadecimal digits"));
  }
  ASSIGN_OR_RETURN(const std::string directory, ArtifactDirectory(root, id.experiment, id.trial));
  return absl::StrCat(directory, "/", id.sha256,
                      id.trial == kDataFiles ? ".jsonl" : ".safetensors");
}

}  // namespace lengthwise::server
