// RestoreBackup of backup.h.
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform/data_directory_names.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/random.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "server/security/token_records.h"
#include "server/storage/backup.h"
#include "server/storage/backup_manifest.h"
#include "server/storage/shared_store.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_schema.h"

namespace lengthwise::server {
namespace {

// Far more leases and events than a server adds between a backup and its restoration.
constexpr int64_t kNumbersLeftOut = int64_t{1} << 40;

// Copies a file and verifies its size and checksum.
absl::Status CopyChecked(const std::string& from, const std::string& to, int64_t size_bytes,
                         const std::string& sha256) {
  platform::Sha256 hash;
  int64_t size = 0;
  absl::Status status = platform::CopyFile(from, to, [&](absl::string_view chunk) {
    hash.Update(chunk);
    size += static_cast<int64_t>(chunk.size());
  });
  if (absl::IsNotFound(status)) {
    return absl::DataLossError(absl::StrCat("the backup lacks ", from));
  }
  if (!status.ok()) return status;
  if (size != size_bytes || hash.Finish() != sha256) {
    return absl::DataLossError(absl::StrCat(from, " is damaged: it has ", size, " of ", size_bytes,
                                            " bytes, or another checksum"));
  }
  return absl::OkStatus();
}

// The numbers that the server gave out after the backup are unknown and must not be given out
// again. Fencing tokens and positions skip far ahead; ids of experiments get a tag.
absl::Status LeaveOutNumbers(const std::string& database) {
  ASSIGN_OR_RETURN(const std::string tag, platform::RandomHex(6));
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> opened,
                   SqliteConnection::Open(database, /*read_only=*/false));
  RETURN_IF_ERROR(Migrate(*opened));
  return opened->Execute(absl::StrCat(
      "BEGIN IMMEDIATE; INSERT INTO restores (tag, time) VALUES ('", tag,
      "', CAST(strftime('%s', 'now') AS INTEGER) * 1000000); "
      "INSERT INTO sqlite_sequence (name, seq) SELECT column1, 0 FROM (VALUES ('leases'), "
      "('events')) WHERE column1 NOT IN (SELECT name FROM sqlite_sequence); "
      "UPDATE sqlite_sequence SET seq = seq + ",
      kNumbersLeftOut, " WHERE name IN ('leases', 'events'); COMMIT;"));
}

absl::Status Copy(const std::string& backup, const BackupManifest& manifest,
                  const std::string& directory) {
  RETURN_IF_ERROR(platform::CreateDirectories(directory));
  for (const BackupManifest::Artifact& artifact : manifest.artifacts) {
    ASSIGN_OR_RETURN(const std::string relative,
                     ArtifactPath(std::string(platform::kArtifactsDirectory), artifact.id));
    const std::string to = absl::StrCat(directory, "/", relative);
    RETURN_IF_ERROR(platform::CreateDirectories(std::filesystem::path(to).parent_path().string()));
    RETURN_IF_ERROR(CopyChecked(absl::StrCat(backup, "/", relative), to, artifact.size_bytes,
                                artifact.id.sha256));
  }
  const std::string database = absl::StrCat(directory, "/", platform::kDatabaseFile);
  RETURN_IF_ERROR(CopyChecked(absl::StrCat(backup, "/", platform::kDatabaseFile), database,
                              manifest.database_bytes, manifest.database_sha256));
  RETURN_IF_ERROR(CopyTokens(backup, directory));
  if (!manifest.elsewhere.empty()) {
    RETURN_IF_ERROR(RequireSharedStore(directory));
  }
  RETURN_IF_ERROR(CheckDatabase(database));
  RETURN_IF_ERROR(LeaveOutNumbers(database));
  return platform::SyncFileSystem(directory);
}

// Checks that the backup and the choice of a shared store match, and that the store has a
// checkpoint of each trial.
absl::Status CheckElsewhere(const std::string& backup, const BackupManifest& manifest,
                            const CheckpointPlace& place) {
  if (place.name.empty()) {
    if (manifest.elsewhere.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        backup, " does not contain the checkpoints, which were in ", manifest.elsewhere,
        "; add --artifacts with that place or a snapshot of it, and --take_over_artifacts"));
  }
  for (const BackupManifest::Artifact& artifact : manifest.artifacts) {
    if (artifact.id.trial == kDataFiles) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(backup,
                     " contains checkpoints; restore it without --artifacts, and move them "
                     "as docs/checkpoint_stores.md describes"));
  }
  ASSIGN_OR_RETURN(const TrialsWithout without,
                   FindTrialsWithout(manifest.checkpoints_elsewhere, place.find));
  if (without.count == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      place.name, " has no checkpoint of ", without.count, " trials of the backup, such as ",
      without.example,
      "; mount it or bring back its snapshot, or give these trials up: delete their entries from "
      "checkpoints_elsewhere in ",
      backup, "/manifest.json"));
}

}  // namespace

CheckpointPlace CheckpointsIn(const std::string& directory) {
  return {.name = directory,
          .find = [directory](const ArtifactId& id, int64_t size_bytes) -> absl::Status {
            ASSIGN_OR_RETURN(const std::string path, ArtifactPath(directory, id));
            ASSIGN_OR_RETURN(const auto file, platform::GetFileStatus(path));
            if (file.size == size_bytes) return absl::OkStatus();
            return absl::DataLossError(absl::StrCat(path, " has ", file.size, " bytes"));
          }};
}

absl::Status RestoreBackup(const std::string& backup, const std::string& data_dir,
                           const CheckpointPlace& place) {
  const absl::StatusOr<BackupManifest> manifest = ReadManifest(backup);
  if (absl::IsNotFound(manifest.status())) {
    return absl::NotFoundError(absl::StrCat("there is no backup in ", backup, ": ",
                                            std::string(manifest.status().message())));
  }
  if (!manifest.ok()) return manifest.status();
  ASSIGN_OR_RETURN(const auto present, platform::ListDirectory(data_dir));
  if (!present.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(data_dir, " is not empty (", present.front(),
                     "); a backup is restored into a new or empty data directory. If an earlier "
                     "start restored it already, leave --restore out"));
  }
  RETURN_IF_ERROR(CheckElsewhere(backup, *manifest, place));
  const std::string target(absl::StripSuffix(data_dir, "/"));
  const std::string unfinished = absl::StrCat(target, ".restoring");
  absl::Status status = platform::DeleteTree(unfinished);
  if (status.ok()) status = Copy(backup, *manifest, unfinished);
  if (status.ok()) status = platform::MoveDirectory(unfinished, target);
  if (!status.ok()) {
    platform::DeleteTree(unfinished).IgnoreError();
    return status;
  }
  platform::LogInfo(
      "restored ", backup, " of ", absl::FormatTime(manifest->create_time, absl::UTCTimeZone()),
      ": ", manifest->artifacts.size(), " artifacts, database of ", manifest->database_bytes,
      " bytes",
      manifest->elsewhere.empty() ? ""
                                  : absl::StrCat(", ", manifest->checkpoints_elsewhere.size(),
                                                 " checkpoints in ", place.name));
  std::error_code error;
  if (std::filesystem::exists(absl::StrCat(target, "/", kTokensFile), error)) {
    platform::LogWarning(
        "the tokens are those of the backup: revoke again the ones that were revoked since");
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
