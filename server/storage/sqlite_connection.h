// A thin layer over SQLite's C API: connections that cache prepared statements and report errors as
// absl::Status.
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_CONNECTION_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::server {

class SqliteConnection;

// Bytes that are not text. Must outlive the statement's last Step.
struct SqliteBlob {
  absl::string_view bytes;
};

// A running statement. The first error ends it and is kept: check status() after the last Step().
class SqliteStatement {
 public:
  ~SqliteStatement();
  SqliteStatement(SqliteStatement&& other) noexcept
      : connection_(other.connection_),
        statement_(std::exchange(other.statement_, nullptr)),
        status_(std::move(other.status_)) {}
  SqliteStatement& operator=(SqliteStatement&&) = delete;

  // True if there is a row. False at the end, or on an error.
  bool Step();
  // Steps to the end.
  absl::Status Run();
  const absl::Status& status() const { return status_; }

  // Columns of the row, from 0. Views are valid until the next Step.
  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  double Double(int column) const { return sqlite3_column_double(statement_, column); }
  absl::string_view Bytes(int column) const;
  std::string String(int column) const { return std::string(Bytes(column)); }
  absl::Time Time(int column) const { return absl::FromUnixMicros(Int(column)); }
  // Sets the values to the first columns, in their order.
  template <typename... Values>
  void Read(Values&... values) const {
    int column = 0;
    (ReadColumn(column++, values), ...);
  }

  // Sets a parameter, counted from 1, before the first Step. For statements whose number of
  // parameters varies, started by Query without any.
  template <typename T>
  void Bind(int index, const T& value) {
    if constexpr (std::is_same_v<T, absl::Time>) {
      Check(sqlite3_bind_int64(statement_, index, absl::ToUnixMicros(value)));
    } else if constexpr (std::is_floating_point_v<T>) {
      Check(sqlite3_bind_double(statement_, index, value));
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      Check(sqlite3_bind_int64(statement_, index, static_cast<int64_t>(value)));
    } else if constexpr (std::is_same_v<T, SqliteBlob>) {
      BindBytes(index, value.bytes, /*is_text=*/false);
    } else {
      BindBytes(index, value, /*is_text=*/true);
    }
  }

 private:
  friend class SqliteConnection;
  SqliteStatement(SqliteConnection* connection, sqlite3_stmt* statement, absl::Status status)
      : connection_(connection), statement_(statement), status_(std::move(status)) {}

  template <typename T>
  void ReadColumn(int column, T& value) const {
    if constexpr (std::is_same_v<T, absl::Time>) {
      value = Time(column);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = String(column);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = Double(column);
    } else {
      value = static_cast<T>(Int(column));
    }
  }
  void BindBytes(int index, absl::string_view bytes, bool is_text);
  void Check(int code);

  SqliteConnection* connection_;
  sqlite3_stmt* statement_;
  absl::Status status_;
};

// The first column of the first row; 0 without a row.
absl::StatusOr<int64_t> Number(SqliteStatement query);

// Not thread-safe.
class SqliteConnection {
 public:
  // Opens a database file; creates it unless `read_only`.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path,
                                                                bool read_only);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  // Starts a statement with parameters ?1, ?2, ... `sql` must live forever: the prepared statement
  // is cached under its address. Text parameters must outlive the statement's last Step.
  template <typename... Parameters>
  SqliteStatement Query(const char* sql, const Parameters&... parameters);

  // Runs a statement without results.
  template <typename... Parameters>
  absl::Status Run(const char* sql, const Parameters&... parameters) {
    return Query(sql, parameters...).Run();
  }

  // Runs statements without results, without caching them.
  absl::Status Execute(const std::string& sql);

  // Copies the write-ahead log into the database after each commit that leaves at least `pages` in
  // it. Unlike `PRAGMA wal_autocheckpoint`, this notices a failed sync.
  void CheckpointAfterCommits(int pages);
  // Copies as much of the log into the database as readers allow. A failed sync is reported by
  // failed_sync(); after any other error the next checkpoint tries again.
  void Checkpoint();

  // For the functions of SQLite's API that this class does not have.
  sqlite3* database() { return database_; }
  // Frees the pages that are kept for the next statements.
  void ReleaseMemory() { sqlite3_db_release_memory(database_); }

  const std::string& path() const { return path_; }
  // True if another file, or none, has the path now.
  bool HasMoved() const;
  int64_t LastInsertRowId() const { return sqlite3_last_insert_rowid(database_); }
  int64_t TotalChanges() const { return sqlite3_total_changes64(database_); }
  bool InTransaction() const { return sqlite3_get_autocommit(database_) == 0; }

  // The first error since ClearError.
  const absl::Status& first_error() const { return first_error_; }
  void ClearError() { first_error_ = absl::OkStatus(); }

  // The error of the first failed sync; kept for good. The files cannot be trusted from then on,
  // even if a later sync succeeds, because the kernel may have dropped pages that it could not
  // write. Closing the connection then leaves the log in place, so that the next connection reads
  // it back from the disk.
  const absl::Status& failed_sync() const { return failed_sync_; }

 private:
  friend class SqliteStatement;
  SqliteConnection(std::string path, sqlite3* database);
  absl::Status Error(int code);
  static int AfterCommit(void* connection, sqlite3* database, const char* name, int pages);
  SqliteStatement Prepare(const char* sql);

  const std::string path_;
  sqlite3* const database_;
  absl::Status first_error_;
  absl::Status failed_sync_;
  int checkpoint_pages_ = 0;
  absl::flat_hash_map<const char*, sqlite3_stmt*> statements_;
};

// The status for the newest result code of a connection: RESOURCE_EXHAUSTED, DATA_LOSS,
// FAILED_PRECONDITION or UNAVAILABLE. The message names the file, the operating system's error if
// that is the cause, and what to do next.
absl::Status SqliteError(int code, sqlite3* database, absl::string_view path);

template <typename... Parameters>
SqliteStatement SqliteConnection::Query(const char* sql, const Parameters&... parameters) {
  SqliteStatement statement = Prepare(sql);
  if (!statement.status().ok()) return statement;
  [[maybe_unused]] int index = 0;
  (statement.Bind(++index, parameters), ...);
  return statement;
}

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_CONNECTION_H_
