#include "server/storage/backup.h"

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "platform/data_directory_names.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "proto/event.pb.h"
#include "proto/timestamps.h"
#include "server/security/token_records.h"
#include "server/storage/artifact_store.h"
#include "server/storage/backup_manifest.h"
#include "server/storage/records.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_schema.h"
#include "specification/examples.h"

namespace lengthwise::server {
namespace {

constexpr absl::string_view kUnfinishedPrefix = ".unfinished-";
// Pages of the database between two reports of progress.
constexpr int kPagesAtOnce = 1024;

// The artifacts that trials of a database may resume from, the newest of each trial first.
absl::StatusOr<std::vector<BackupManifest::Artifact>> NamedArtifacts(const std::string& database) {
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> opened,
                   SqliteConnection::Open(database, /*read_only=*/true));
  SqliteStatement query = opened->Query(
      "SELECT t.key, x.id, t.id, e.payload FROM trials t CROSS JOIN experiments x "
      "ON x.key = t.experiment CROSS JOIN events e ON e.trial = t.key AND e.kind = ?1 "
      "WHERE t.checkpoint_step > 0 AND substr(x.id, 1, 1) <> '" LENGTHWISE_DELETED
      "' "
      "ORDER BY t.key, e.position DESC",
      static_cast<int>(v1::Event::kCheckpoint));
  std::vector<BackupManifest::Artifact> artifacts;
  int64_t trial = 0;
  int taken = 0;
  while (query.Step()) {
    if (query.Int(0) != std::exchange(trial, query.Int(0))) taken = 0;
    if (++taken > kKeptCheckpoints) continue;
    v1::Event event;
    if (!event.ParseFromString(query.String(3))) {
      return absl::DataLossError(absl::StrCat(database, ": an event of experiments/",
                                              query.String(1), "/trials/", query.String(2),
                                              " is damaged"));
    }
    BackupManifest::Artifact artifact = {.id = {.experiment = query.String(1),
                                                .trial = query.String(2),
                                                .sha256 = event.checkpoint().sha256()},
                                         .size_bytes = event.checkpoint().size_bytes()};
    // Two checkpoints may have the same bytes.
    if (artifacts.empty() || artifacts.back().id != artifact.id) {
      artifacts.push_back(std::move(artifact));
    }
  }
  RETURN_IF_ERROR(query.status());
  SqliteStatement experiments = opened->Query(
      "SELECT id, specification FROM experiments WHERE substr(id, 1, 1) <> '" LENGTHWISE_DELETED
      "'");
  while (experiments.Step()) {
    v1::ExperimentSpecification specification;
    if (!specification.ParseFromString(experiments.String(1))) {
      return absl::DataLossError(absl::StrCat(database, ": the specification of experiments/",
                                              experiments.String(0), " is damaged"));
    }
    for (const specification::DataFile& file : specification::DataFilesOf(specification)) {
      artifacts.push_back({.id = {.experiment = experiments.String(0),
                                  .trial = std::string(kDataFiles),
                                  .sha256 = file.sha256},
                           .size_bytes = file.bytes});
    }
  }
  RETURN_IF_ERROR(experiments.status());
  return artifacts;
}

// One backup being made.
class Maker {
 public:
  Maker(const std::string& data_dir, std::string directory, ArtifactStore& artifacts,
        const BackupProgress& progress)
      : data_dir_(data_dir),
        directory_(std::move(directory)),
        artifacts_(artifacts),
        progress_(progress) {}

  absl::Status Make() {
    RETURN_IF_ERROR(platform::CreateDirectories(directory_));
    const std::string database = absl::StrCat(directory_, "/", platform::kDatabaseFile);
    RETURN_IF_ERROR(CopyDatabase(database));
    RETURN_IF_ERROR(CheckDatabase(database));
    RETURN_IF_ERROR(DescribeDatabase(database));
    RETURN_IF_ERROR(TakeArtifacts(database));
    RETURN_IF_ERROR(CopyTokens(data_dir_, directory_));
    manifest_.create_time = absl::Now();
    RETURN_IF_ERROR(WriteManifest(directory_, manifest_));
    return platform::SyncFileSystem(directory_);
  }

 private:
  bool Tell() { return progress_(copied_, total_); }

  // Copies the database, as of one moment between the call and the first Tell, into a new file,
  // whole and durable.
  absl::Status CopyDatabase(const std::string& to) {
    ASSIGN_OR_RETURN(const auto source,
                     SqliteConnection::Open(absl::StrCat(data_dir_, "/", platform::kDatabaseFile),
                                            /*read_only=*/true));
    ASSIGN_OR_RETURN(const auto copy, SqliteConnection::Open(to, /*read_only=*/false));
    // A read transaction pins the state. Without it, each commit of another connection would
    // restart the copy.
    RETURN_IF_ERROR(source->Execute("BEGIN; SELECT count(*) FROM sqlite_schema;"));
    ASSIGN_OR_RETURN(const int64_t page_size, Number(source->Query("PRAGMA page_size")));

    sqlite3_backup* backup =
        sqlite3_backup_init(copy->database(), "main", source->database(), "main");
    if (backup == nullptr) {
      return SqliteError(sqlite3_errcode(copy->database()), copy->database(), to);
    }
    int code = SQLITE_OK;
    bool wanted = true;
    while (wanted && (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED)) {
      code = sqlite3_backup_step(backup, kPagesAtOnce) & 0xff;
      total_ = sqlite3_backup_pagecount(backup) * page_size;
      copied_ = total_ - sqlite3_backup_remaining(backup) * page_size;
      wanted = Tell();
    }
    sqlite3_backup_finish(backup);
    if (code != SQLITE_DONE && code != SQLITE_OK) {
      return SqliteError(code, copy->database(), to);
    }
    if (!wanted) return absl::CancelledError("the backup was cancelled");
    // A single file, without a log beside it.
    return copy->Execute("PRAGMA journal_mode = DELETE");
  }

  absl::Status DescribeDatabase(const std::string& database) {
    platform::Sha256 hash;
    absl::Status status = platform::ReadFileInChunks(database, [&](absl::string_view chunk) {
      hash.Update(chunk);
      manifest_.database_bytes += static_cast<int64_t>(chunk.size());
      return true;
    });
    manifest_.database_sha256 = hash.Finish();
    return status;
  }

  absl::Status TakeArtifacts(const std::string& database) {
    ASSIGN_OR_RETURN(std::vector<BackupManifest::Artifact> named, NamedArtifacts(database));
    manifest_.elsewhere = artifacts_.elsewhere();
    for (const BackupManifest::Artifact& artifact : named) {
      if (!artifacts_.IsElsewhere(artifact.id.trial)) total_ += artifact.size_bytes;
    }
    for (const BackupManifest::Artifact& artifact : named) {
      if (!Tell()) return absl::CancelledError("the backup was cancelled");
      const bool is_elsewhere = artifacts_.IsElsewhere(artifact.id.trial);
      // The bytes of a shared store are not read: it may be large.
      const absl::Status whole =
          is_elsewhere
              ? artifacts_.VerifyQuickly(artifact.id, artifact.size_bytes, /*most_bytes=*/0)
              : artifacts_.Verify(artifact.id, artifact.size_bytes);
      if (absl::IsDataLoss(whole)) platform::LogError("left out of the backup: ", whole.message());
      // Damaged, or deleted by retention since, such as the second-newest checkpoint of a trial
      // that succeeded.
      if (absl::IsDataLoss(whole) || absl::IsNotFound(whole)) {
        if (!is_elsewhere) total_ -= artifact.size_bytes;
        continue;
      }
      RETURN_IF_ERROR(whole);
      (is_elsewhere ? manifest_.checkpoints_elsewhere : manifest_.artifacts).push_back(artifact);
      if (is_elsewhere) continue;
      RETURN_IF_ERROR(Take(artifact.id));
      copied_ += artifact.size_bytes;
    }
    if (!manifest_.elsewhere.empty()) {
      platform::LogInfo("the backup lists ", manifest_.checkpoints_elsewhere.size(),
                        " checkpoints and does not contain them: make a snapshot of ",
                        manifest_.elsewhere, " now");
    }
    Tell();
    return absl::OkStatus();
  }

  absl::Status Take(const ArtifactId& id) {
    ASSIGN_OR_RETURN(const std::string relative,
                     ArtifactPath(std::string(platform::kArtifactsDirectory), id));
    const std::string to = absl::StrCat(directory_, "/", relative);
    RETURN_IF_ERROR(platform::CreateDirectories(std::filesystem::path(to).parent_path().string()));
    return platform::LinkOrCopyFile(absl::StrCat(data_dir_, "/", relative), to);
  }

  const std::string& data_dir_;
  const std::string directory_;
  ArtifactStore& artifacts_;
  const BackupProgress& progress_;
  BackupManifest manifest_;
  int64_t copied_ = 0;
  int64_t total_ = 0;
};

}  // namespace

absl::Status CopyTokens(const std::string& from, const std::string& to) {
  for (const absl::string_view file : {kTokensFile, kRequiresTokensFile}) {
    const absl::Status status =
        platform::CopyFile(absl::StrCat(from, "/", file), absl::StrCat(to, "/", file));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeBackup(const std::string& data_dir, const std::string& name,
                                       ArtifactStore& artifacts, const BackupProgress& progress) {
  const std::string backups = absl::StrCat(data_dir, "/", platform::kBackupsDirectory);
  const std::string path = absl::StrCat(backups, "/", name);
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is a backup \"", name, "\" already; choose another name"));
  }
  const std::string unfinished = absl::StrCat(backups, "/", kUnfinishedPrefix, name);
  absl::Status status = platform::DeleteTree(unfinished);
  if (status.ok()) status = Maker(data_dir, unfinished, artifacts, progress).Make();
  if (status.ok()) status = platform::MoveDirectory(unfinished, path);
  if (!status.ok()) {
    platform::DeleteTree(unfinished).IgnoreError();
    return status;
  }
  return path;
}

absl::StatusOr<bool> NamesCheckpoints(const std::string& database) {
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> opened,
                   SqliteConnection::Open(database, /*read_only=*/true));
  ASSIGN_OR_RETURN(
      const int64_t names,
      Number(opened->Query("SELECT EXISTS (SELECT 1 FROM trials WHERE checkpoint_step > 0)")));
  return names != 0;
}

absl::Status LogTrialsWithoutCheckpoint(const std::string& database, ArtifactStore& artifacts) {
  ASSIGN_OR_RETURN(std::vector<BackupManifest::Artifact> named, NamedArtifacts(database));
  std::erase_if(named, [](const auto& artifact) { return artifact.id.trial == kDataFiles; });
  ASSIGN_OR_RETURN(const TrialsWithout without,
                   FindTrialsWithout(named, [&](const ArtifactId& id, int64_t size_bytes) {
                     return artifacts.VerifyQuickly(id, size_bytes, /*most_bytes=*/0);
                   }));
  if (without.count > 0) {
    platform::LogError(without.count,
                       " trials have no checkpoint in the directory that was taken over, such as ",
                       without.example, "; those that have not ended start again");
  }
  return absl::OkStatus();
}

absl::Status DeleteBackup(const std::string& data_dir, const std::string& name) {
  const std::string backups = absl::StrCat(data_dir, "/", platform::kBackupsDirectory, "/");
  const std::string unfinished = absl::StrCat(backups, kUnfinishedPrefix, name);
  RETURN_IF_ERROR(platform::DeleteTree(unfinished));
  RETURN_IF_ERROR(platform::MoveDirectory(absl::StrCat(backups, name), unfinished));
  return platform::DeleteTree(unfinished);
}

absl::Status DeleteUnfinishedBackups(const std::string& data_dir) {
  const std::string backups = absl::StrCat(data_dir, "/", platform::kBackupsDirectory);
  ASSIGN_OR_RETURN(const auto names, platform::ListDirectory(backups));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kUnfinishedPrefix)) continue;
    RETURN_IF_ERROR(platform::DeleteTree(absl::StrCat(backups, "/", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Backup>> ListBackups(const std::string& data_dir) {
  const std::string backups = absl::StrCat(data_dir, "/", platform::kBackupsDirectory);
  ASSIGN_OR_RETURN(const auto names, platform::ListDirectory(backups));
  std::vector<v1::Backup> all;
  for (const std::string& name : names) {
    if (absl::StartsWith(name, ".")) continue;
    const auto manifest = ReadManifest(absl::StrCat(backups, "/", name));
    if (!manifest.ok()) continue;  // not a backup, or not one that can be restored
    int64_t bytes = manifest->database_bytes;
    for (const auto& artifact : manifest->artifacts) bytes += artifact.size_bytes;
    v1::Backup& backup = all.emplace_back();
    backup.set_name(name);
    *backup.mutable_create_time() = ToTimestamp(manifest->create_time);
    backup.set_bytes(bytes);
  }
  return all;
}

}  // namespace lengthwise::server
