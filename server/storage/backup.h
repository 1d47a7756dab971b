// Backups: copies of the data directory of a running server, and their restoration.
//
//   <backup>/lengthwise.db     the database as it was at one moment
//   <backup>/artifacts/...     the newest two checkpoints of each trial that existed then, laid
//                              out as in the data directory
//   <backup>/tokens            the server's access tokens, if any (server/security/token_store.h)
//   <backup>/requires_tokens   marks a server with tokens: a restored one must not be open to all
//   <backup>/manifest.json     {"format": "lengthwise.backup.1", "create_time",
//                              "database": {"size_bytes", "sha256"},
//                              "artifacts": [{"experiment", "trial", "sha256", "size_bytes"}]}
//
// A backup of a server with a shared store has the files of examples alone in artifacts/. Its
// manifest has format "lengthwise.backup.2", the store's directory in "elsewhere", and the
// checkpoints, as in "artifacts", in "checkpoints_elsewhere".
#ifndef LENGTHWISE_SERVER_STORAGE_BACKUP_H_
#define LENGTHWISE_SERVER_STORAGE_BACKUP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/administration_service.pb.h"
#include "server/storage/artifact_store.h"

namespace lengthwise::server {

// Copies the access control files (server/security/token_records.h) that exist from one directory
// to another. The copies are readable by their owner only.
absl::Status CopyTokens(const std::string& from, const std::string& to);

// Called with the bytes copied so far and the total known so far. Return false to cancel the
// backup.
using BackupProgress = std::function<bool(int64_t copied, int64_t total)>;

// Creates "<data_dir>/backups/<name>", which appears whole, checked and durable, or not at all.
// `artifacts` is the store of the data directory; nothing may be deleted from it during the call. A
// damaged artifact is left out and logged. Returns the backup's path.
//
// ALREADY_EXISTS; CANCELLED by `progress`; RESOURCE_EXHAUSTED for a full disk; errors of storage.h.
absl::StatusOr<std::string> MakeBackup(const std::string& data_dir, const std::string& name,
                                       ArtifactStore& artifacts, const BackupProgress& progress);

// True if trials of the database have stored checkpoints.
absl::StatusOr<bool> NamesCheckpoints(const std::string& database);

// Logs how many trials of the database have checkpoints of which none is in `artifacts`.
absl::Status LogTrialsWithoutCheckpoint(const std::string& database, ArtifactStore& artifacts);

// Deletes a complete backup: a part of it is never taken for one.
absl::Status DeleteBackup(const std::string& data_dir, const std::string& name);

// Deletes the files of interrupted backups.
absl::Status DeleteUnfinishedBackups(const std::string& data_dir);

// Sorted by name.
absl::StatusOr<std::vector<v1::Backup>> ListBackups(const std::string& data_dir);

// A place of checkpoints outside the data directory; without a name: none.
struct CheckpointPlace {
  std::string name;
  // OK if the place has this checkpoint with this size; errors as ArtifactStore::Verify.
  std::function<absl::Status(const ArtifactId& id, int64_t size_bytes)> find;
};
CheckpointPlace CheckpointsIn(const std::string& directory);

// Restores a backup into `data_dir`, which must be missing or empty: all of it or nothing. Lease
// tokens and event positions continue far beyond the backup's, so that workers and watchers of the
// server that ran on after the backup cannot be mistaken for those of the restored one.
//
// Each trial with checkpoints in `place` must have one of the right size there.
//
// NOT_FOUND if there is no backup; FAILED_PRECONDITION if `data_dir` is not empty, or if the backup
// needs a shared store or contains what belongs in one; DATA_LOSS names the file that is missing or
// damaged.
absl::Status RestoreBackup(const std::string& backup, const std::string& data_dir,
                           const CheckpointPlace& place = {});

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_BACKUP_H_
