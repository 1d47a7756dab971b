#include "server/storage/sqlite_storage.h"

#include <unistd.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/log.h"
#include "platform/mutex.h"
#include "platform/random.h"
#include "platform/status_macros.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_schema.h"

namespace lengthwise::server {
namespace {

// Returned readers beyond this number are closed.
constexpr size_t kMaxIdleReaders = 8;

// Pages of the log after which it is copied into the database.
constexpr int kCheckpointPages = 4000;

class SqliteStorage : public Storage {
 public:
  SqliteStorage(std::unique_ptr<SqliteConnection> connection, const SqliteOptions& options,
                int64_t epoch, LeaseKey lease_key)
      : connection_(std::move(connection)),
        writer_(*connection_, epoch, options.on_lost),
        lease_key_(std::move(lease_key)) {}

  StorageWriter& writer() override { return writer_; }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override;
  int64_t SizeBytes() const override;
  const LeaseKey& lease_key() const override { return lease_key_; }

  void GiveBack(std::unique_ptr<SqliteConnection> connection);

 private:
  const std::unique_ptr<SqliteConnection> connection_;
  StorageWriter writer_;
  const LeaseKey lease_key_;
  platform::Mutex mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_ ABSL_GUARDED_BY(mutex_);
};

// Borrows a connection for one read transaction.
class Snapshot : public StorageReader {
 public:
  Snapshot(SqliteStorage& storage, std::unique_ptr<SqliteConnection> connection)
      : StorageReader(*connection), storage_(storage), owned_(std::move(connection)) {}
  ~Snapshot() override {
    // A connection that saw an error is closed, because it keeps the last error of its file
    // (IsFailedRead of sqlite_connection.cc).
    if (!connection_.Query("COMMIT").Run().ok() || !connection_.first_error().ok()) return;
    // The pages hold only for this snapshot, once anything is written.
    connection_.ReleaseMemory();
    storage_.GiveBack(std::move(owned_));
  }

 private:
  SqliteStorage& storage_;
  std::unique_ptr<SqliteConnection> owned_;
};

absl::StatusOr<std::unique_ptr<StorageReader>> SqliteStorage::Read() {
  std::unique_ptr<SqliteConnection> connection;
  {
    platform::MutexLock lock(mutex_);
    if (!idle_.empty()) {
      connection = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (connection == nullptr) {
    ASSIGN_OR_RETURN(connection, SqliteConnection::Open(connection_->path(), /*read_only=*/true));
  }
  RETURN_IF_ERROR(connection->Run("BEGIN"));
  return std::make_unique<Snapshot>(*this, std::move(connection));
}

void SqliteStorage::GiveBack(std::unique_ptr<SqliteConnection> connection) {
  platform::MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdleReaders) idle_.push_back(std::move(connection));
}

int64_t SqliteStorage::SizeBytes() const {
  int64_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    const auto status = platform::GetFileStatus(absl::StrCat(connection_->path(), suffix));
    if (status.ok()) bytes += status->size;
  }
  return bytes;
}

// Creates an empty database if there is none. Its directory entry must be durable before SQLite
// syncs anything.
absl::Status MakeDatabaseFile(const std::string& path) {
  std::error_code error;
  const std::string directory = platform::DirectoryOf(path);
  if (std::filesystem::exists(path, error) || !std::filesystem::exists(directory, error)) {
    return absl::OkStatus();
  }
  absl::Status status = platform::WriteFileAtomically(path, "");
  if (!status.ok()) platform::DeleteFile(path).IgnoreError();
  // SQLite's own error for a file that cannot be created is better.
  return absl::IsPermissionDenied(status) ? absl::OkStatus() : status;
}

// Databases of older releases cannot return space step by step. One that is mostly unused is
// vacuumed once at the start, if that is quick and there is room for the copy.
absl::Status ShrinkOnce(SqliteConnection& connection) {
  ASSIGN_OR_RETURN(const UnusedPages found, FindUnusedPages(connection));
  if (found.incremental || found.unused < kFewPages || found.unused < found.pages / 2) {
    return absl::OkStatus();
  }
  constexpr int64_t kQuick = int64_t{1} << 30;
  const int64_t used = (found.pages - found.unused) * found.page_size;
  const absl::StatusOr<platform::DiskSpace> disk =
      platform::GetDiskSpace(platform::DirectoryOf(connection.path()));
  const std::string description =
      absl::StrCat(connection.path(), " has ", found.unused * found.page_size >> 20,
                   " MiB of unused space and ", used >> 20, " MiB of data");
  if (!disk.ok() || disk->free_bytes < 3 * used || used > kQuick) {
    platform::LogInfo(
        description,
        "; to reclaim it, stop the server, make sure there is room for a copy, and run: "
        "sqlite3 ",
        connection.path(), " 'PRAGMA auto_vacuum = INCREMENTAL; VACUUM'");
    return absl::OkStatus();
  }
  platform::LogInfo(description, ": reclaiming the unused space once");
  // The copy may be too large for memory.
  absl::Status status = connection.Execute("PRAGMA temp_store = FILE; VACUUM");
  connection.Execute("PRAGMA temp_store = MEMORY").IgnoreError();
  connection.Checkpoint();
  if (!connection.failed_sync().ok()) return connection.failed_sync();
  // The database is unchanged.
  if (!status.ok()) platform::LogWarning(status.message());
  return absl::OkStatus();
}

// The key of the database. Generates one if there is none.
absl::StatusOr<LeaseKey> MakeLeaseKey(SqliteConnection& connection) {
  ASSIGN_OR_RETURN(const std::string random, platform::RandomHex(64));
  RETURN_IF_ERROR(connection.Run(
      "INSERT INTO lease_keys SELECT ?1, coalesce((SELECT seq FROM sqlite_sequence WHERE "
      "name = 'leases'), 0) + 1 WHERE NOT EXISTS (SELECT 1 FROM lease_keys)",
      random));
  LeaseKey key;
  SqliteStatement query = connection.Query("SELECT key, first_token FROM lease_keys");
  if (query.Step()) key = {.key = query.String(0), .first_token = query.Int(1)};
  RETURN_IF_ERROR(query.status());
  return key;
}

// Makes the database this process's, and returns the number that says so.
absl::StatusOr<int64_t> RaiseEpoch(SqliteConnection& connection) {
  SqliteStatement query = connection.Query("UPDATE owner SET epoch = epoch + 1 RETURNING epoch");
  const int64_t epoch = query.Step() ? query.Int(0) : 0;
  RETURN_IF_ERROR(query.Run());
  return epoch;
}

}  // namespace

void StopProcess(const absl::Status& reason) {
  platform::LogError(reason.message());
  // Not exit(): from here on nothing may be written, acknowledged or cleaned up.
  _exit(1);
}

absl::StatusOr<std::unique_ptr<Storage>> OpenSqliteStorage(const std::string& path,
                                                           const SqliteOptions& options) {
  // An earlier process may have stopped on a failed sync. The checksums of the log decide which
  // transactions are on the disk; these include all that were acknowledged.
  for (const char* suffix : {"", "-wal"}) {
    const absl::Status status = platform::DropCachedPages(absl::StrCat(path, suffix));
    // SQLite's own error for a file that cannot be opened is better.
    const bool cannot_open = absl::IsNotFound(status) || absl::IsPermissionDenied(status);
    if (!status.ok() && !cannot_open) return status;
  }
  RETURN_IF_ERROR(MakeDatabaseFile(path));
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> opened,
                   SqliteConnection::Open(path, /*read_only=*/false));
  SqliteConnection& connection = *opened;
  absl::Status status = connection.Execute(
      "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
      "PRAGMA foreign_keys = ON; "
      "PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY; "
      "PRAGMA journal_size_limit = 67108864;");
  connection.CheckpointAfterCommits(kCheckpointPages);
  // The first read creates the log. Sync its directory here, because SQLite ignores a failure of
  // that sync.
  if (status.ok()) status = connection.Run("SELECT count(*) FROM sqlite_schema");
  if (status.ok()) status = platform::SyncDirectory(platform::DirectoryOf(path));
  if (status.ok()) status = Migrate(connection);
  if (status.ok()) status = ShrinkOnce(connection);
  if (status.ok() && options.max_bytes > 0) {
    ASSIGN_OR_RETURN(const int64_t page_size, Number(connection.Query("PRAGMA page_size")));
    status =
        connection.Execute(absl::StrCat("PRAGMA max_page_count = ", options.max_bytes / page_size));
  }
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(LeaseKey lease_key, MakeLeaseKey(connection));
  ASSIGN_OR_RETURN(const int64_t epoch, RaiseEpoch(connection));
  return std::make_unique<SqliteStorage>(std::move(opened), options, epoch, std::move(lease_key));
}

}  // namespace lengthwise::server
