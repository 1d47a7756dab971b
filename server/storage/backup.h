// Backups: a copy of the data directory of a server that goes on working, and the way back.
//
//   <backup>/lengthwise.db     the database as it was at one moment
//   <backup>/artifacts/...     the newest two checkpoints of each trial that were there, laid out
//   as
//                              in the data directory
//   <backup>/tokens,           who may call (server/security/token_store.h), where the server has
//   tokens: a <backup>/requires_tokens   restored server must not be open to everyone
//   <backup>/manifest.json     {"format": "lengthwise.backup.1", "create_time",
//                              "database": {"size_bytes", "sha256"},
//                              "artifacts": [{"experiment", "trial", "sha256", "size_bytes"}]}
#ifndef LENGTHWISE_SERVER_STORAGE_BACKUP_H_
#define LENGTHWISE_SERVER_STORAGE_BACKUP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/storage/artifact_store.h"

namespace lengthwise::server {

// Copies the files of server/security/token_files.h from one directory to the other, where there
// are some; readable by their owner alone.
absl::Status CopyTokens(const std::string& from, const std::string& to);

// Inside a data directory.
inline constexpr absl::string_view kDatabaseFile = "lengthwise.db";
inline constexpr absl::string_view kArtifactsDirectory = "artifacts";
inline constexpr absl::string_view kBackupsDirectory = "backups";

// Hears bytes done and to do (as far as is known yet); false gives the backup up.
using BackupProgress = std::function<bool(int64_t copied, int64_t total)>;

// Makes "<data_dir>/backups/<name>": appears whole, checked and durable, or not at all. `artifacts`
// is the store of the data directory, from which nothing may be deleted meanwhile; an artifact that
// is damaged there is left out, with a line in the log. Returns the backup's path.
//
// ALREADY_EXISTS; CANCELLED when given up; RESOURCE_EXHAUSTED for a full disk; errors of storage.h.
absl::StatusOr<std::string> MakeBackup(const std::string& data_dir, const std::string& name,
                                       ArtifactStore& artifacts, const BackupProgress& progress);

// Deletes what interrupted backups left.
absl::Status DeleteUnfinishedBackups(const std::string& data_dir);

struct BackupDescription {
  std::string name;
  absl::Time create_time;
  int64_t bytes = 0;
};
// By name.
absl::StatusOr<std::vector<BackupDescription>> ListBackups(const std::string& data_dir);

// Makes `data_dir`, which must be missing or empty, a copy of a backup: all of it or nothing. The
// numbers of leases and events go on far beyond the backup's, so that neither a worker nor a
// watcher of the server that went on after the backup is mistaken for one of this one.
//
// NOT_FOUND: there is no backup; FAILED_PRECONDITION: `data_dir` has something in it; DATA_LOSS
// names the file that is missing or damaged.
absl::Status RestoreBackup(const std::string& backup, const std::string& data_dir);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_BACKUP_H_
