#include "server/storage/backup_manifest.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "platform/data_directory_names.h"
#include "platform/files.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "server/storage/resource_id.h"

namespace lengthwise::server {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "lengthwise.backup.1";
// With checkpoints elsewhere. Older servers refuse it: they would take them for lost.
constexpr char kFormatElsewhere[] = "lengthwise.backup.2";
constexpr absl::string_view kFile = platform::kBackupManifest;

// The member of an object, or a value of the wrong type, which the getters below refuse.
const Json& Member(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

int64_t Size(const Json& value) { return value.is_number_integer() ? value.get<int64_t>() : -1; }

Json ToJson(const std::vector<BackupManifest::Artifact>& artifacts) {
  Json list = Json::array();
  for (const BackupManifest::Artifact& artifact : artifacts) {
    list.push_back({{"experiment", artifact.id.experiment},
                    {"trial", artifact.id.trial},
                    {"sha256", artifact.id.sha256},
                    {"size_bytes", artifact.size_bytes}});
  }
  return list;
}

// Appends the artifacts of a list. Returns what is damaged, or an empty text.
std::string AddArtifacts(const Json& list, absl::string_view name,
                         std::vector<BackupManifest::Artifact>& artifacts) {
  if (!list.is_array()) return std::string(name);
  for (const Json& entry : list) {
    BackupManifest::Artifact artifact = {.id = {.experiment = Text(Member(entry, "experiment")),
                                                .trial = Text(Member(entry, "trial")),
                                                .sha256 = Text(Member(entry, "sha256"))},
                                         .size_bytes = Size(Member(entry, "size_bytes"))};
    if (!IsResourceId(artifact.id.experiment) || !IsResourceId(artifact.id.trial) ||
        !platform::IsSha256Hex(artifact.id.sha256) || artifact.size_bytes < 0) {
      // The error does not print the entry: it may be nested too deeply to print.
      return absl::StrCat(name, "[", artifacts.size(), "]");
    }
    artifacts.push_back(std::move(artifact));
  }
  return "";
}

}  // namespace

absl::StatusOr<TrialsWithout> FindTrialsWithout(
    const std::vector<BackupManifest::Artifact>& checkpoints,
    const std::function<absl::Status(const ArtifactId& id, int64_t size_bytes)>& find) {
  TrialsWithout without;
  absl::Status failed;
  for (size_t i = 0; i < checkpoints.size();) {
    const ArtifactId& first = checkpoints[i].id;
    bool any = false;
    for (; i < checkpoints.size() && checkpoints[i].id.experiment == first.experiment &&
           checkpoints[i].id.trial == first.trial;
         ++i) {
      if (any) continue;
      const absl::Status found = find(checkpoints[i].id, checkpoints[i].size_bytes);
      any = found.ok();
      if (!any && !IsLost(found)) failed = found;
    }
    if (!any && ++without.count == 1) {
      const std::string artifacts(platform::kArtifactsDirectory);
      without.example = ArtifactPath(artifacts, first).value_or(first.trial);
    }
  }
  RETURN_IF_ERROR(failed);
  return without;
}

absl::Status WriteManifest(const std::string& backup, const BackupManifest& manifest) {
  Json json = {
      {"format", manifest.elsewhere.empty() ? kFormat : kFormatElsewhere},
      {"create_time",
       absl::FormatTime(absl::RFC3339_full, manifest.create_time, absl::UTCTimeZone())},
      {"database", {{"size_bytes", manifest.database_bytes}, {"sha256", manifest.database_sha256}}},
      {"artifacts", ToJson(manifest.artifacts)}};
  if (!manifest.elsewhere.empty()) {
    json["elsewhere"] = manifest.elsewhere;
    json["checkpoints_elsewhere"] = ToJson(manifest.checkpoints_elsewhere);
  }
  return platform::WriteFileAtomically(absl::StrCat(backup, "/", kFile), json.dump(1) + "\n");
}

absl::StatusOr<BackupManifest> ReadManifest(const std::string& backup) {
  const std::string path = absl::StrCat(backup, "/", kFile);
  // Has about 200 bytes for each checkpoint.
  constexpr int64_t kMostBytes = int64_t{4} << 30;
  ASSIGN_OR_RETURN(const std::string text, platform::ReadFile(path, kMostBytes));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto damaged = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: ", what));
  };
  const std::string format = Text(Member(json, "format"));
  if (format != kFormat && format != kFormatElsewhere) {
    return damaged(absl::StrCat("it is not of format ", kFormat, " or ", kFormatElsewhere));
  }
  BackupManifest manifest;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, Text(Member(json, "create_time")), &manifest.create_time,
                       &error)) {
    return damaged("create_time");
  }
  const Json& database = Member(json, "database");
  manifest.database_bytes = Size(Member(database, "size_bytes"));
  manifest.database_sha256 = Text(Member(database, "sha256"));
  if (manifest.database_bytes < 0 || !platform::IsSha256Hex(manifest.database_sha256)) {
    return damaged("database");
  }
  std::string wrong = AddArtifacts(Member(json, "artifacts"), "artifacts", manifest.artifacts);
  if (wrong.empty() && format == kFormatElsewhere) {
    manifest.elsewhere = Text(Member(json, "elsewhere"));
    if (manifest.elsewhere.empty()) wrong = "elsewhere";
  }
  if (wrong.empty() && format == kFormatElsewhere) {
    wrong = AddArtifacts(Member(json, "checkpoints_elsewhere"), "checkpoints_elsewhere",
                         manifest.checkpoints_elsewhere);
  }
  if (!wrong.empty()) return damaged(wrong);
  return manifest;
}

}  // namespace lengthwise::server
