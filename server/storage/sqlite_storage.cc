#include "server/storage/sqlite_storage.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/mutex.h"
#include "platform/random.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_schema.h"
#include "server/storage/sqlite_writer.h"

namespace lengthwise::server {
namespace {

// Readers beyond this many are closed when they are given back.
constexpr size_t kMaxIdleReaders = 8;

class SqliteStorage : public Storage {
 public:
  SqliteStorage(std::string path, std::unique_ptr<SqliteConnection> connection, LeaseKey lease_key)
      : path_(std::move(path)),
        connection_(std::move(connection)),
        writer_(*connection_),
        lease_key_(std::move(lease_key)) {}

  StorageWriter& writer() override { return writer_; }
  absl::StatusOr<std::unique_ptr<StorageReader>> Read() override;
  int64_t SizeBytes() const override;
  const LeaseKey& lease_key() const override { return lease_key_; }

  void GiveBack(std::unique_ptr<SqliteConnection> connection);

 private:
  const std::string path_;
  const std::unique_ptr<SqliteConnection> connection_;
  SqliteWriter writer_;
  const LeaseKey lease_key_;
  platform::Mutex mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_ ABSL_GUARDED_BY(mutex_);
};

// Borrows a connection for one read transaction.
class Snapshot : public SqliteReader<StorageReader> {
 public:
  Snapshot(SqliteStorage& storage, std::unique_ptr<SqliteConnection> connection)
      : SqliteReader<StorageReader>(*connection),
        storage_(storage),
        owned_(std::move(connection)) {}
  ~Snapshot() override {
    if (!connection_.Query("COMMIT").Run().ok() || !connection_.first_error().ok()) return;
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
    absl::StatusOr<std::unique_ptr<SqliteConnection>> opened =
        SqliteConnection::Open(path_, /*read_only=*/true);
    if (!opened.ok()) return opened.status();
    connection = *std::move(opened);
  }
  if (absl::Status status = connection->Query("BEGIN").Run(); !status.ok()) return status;
  return std::make_unique<Snapshot>(*this, std::move(connection));
}

void SqliteStorage::GiveBack(std::unique_ptr<SqliteConnection> connection) {
  platform::MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdleReaders) idle_.push_back(std::move(connection));
}

int64_t SqliteStorage::SizeBytes() const {
  int64_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    const auto status = platform::GetFileStatus(absl::StrCat(path_, suffix));
    if (status.ok()) bytes += status->size;
  }
  return bytes;
}

// The key that the database has, or, where it has none yet, a new one.
absl::StatusOr<LeaseKey> MakeLeaseKey(SqliteConnection& connection) {
  const absl::StatusOr<std::string> random = platform::RandomHex(64);
  if (!random.ok()) return random.status();
  absl::Status status =
      connection
          .Query(
              "INSERT INTO lease_keys SELECT ?1, coalesce((SELECT seq FROM sqlite_sequence WHERE "
              "name = 'leases'), 0) + 1 WHERE NOT EXISTS (SELECT 1 FROM lease_keys)",
              *random)
          .Run();
  if (!status.ok()) return status;
  LeaseKey key;
  SqliteStatement query = connection.Query("SELECT key, first_token FROM lease_keys");
  if (query.Step()) key = {.key = query.String(0), .first_token = query.Int(1)};
  if (!query.status().ok()) return query.status();
  return key;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Storage>> OpenSqliteStorage(const std::string& path,
                                                           const SqliteOptions& options) {
  absl::StatusOr<std::unique_ptr<SqliteConnection>> opened =
      SqliteConnection::Open(path, /*read_only=*/false);
  if (!opened.ok()) return opened.status();
  SqliteConnection& connection = **opened;
  absl::Status status = connection.Execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; "
      "PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 4000; "
      "PRAGMA journal_size_limit = 67108864;");
  if (status.ok()) status = Migrate(connection);
  if (status.ok() && options.max_bytes > 0) {
    int64_t page_size = 4096;
    {
      SqliteStatement query = connection.Query("PRAGMA page_size");
      if (query.Step()) page_size = query.Int(0);
    }
    status =
        connection.Execute(absl::StrCat("PRAGMA max_page_count = ", options.max_bytes / page_size));
  }
  // SQLite makes the name of a new log durable, and with it the database's. But a process that made
  // them may have died before that.
  if (status.ok()) {
    const std::string directory = std::filesystem::path(path).parent_path().string();
    status = platform::SyncDirectory(directory.empty() ? "." : directory);
  }
  if (!status.ok()) return status;
  absl::StatusOr<LeaseKey> lease_key = MakeLeaseKey(connection);
  if (!lease_key.ok()) return lease_key.status();
  return std::make_unique<SqliteStorage>(path, *std::move(opened), *std::move(lease_key));
}

}  // namespace lengthwise::server
