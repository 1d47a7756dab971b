#include "server/storage/sqlite_connection.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace lengthwise::server {
namespace {

bool IsFailedSync(int code) { return code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC; }

// SQLite reports a database as malformed if a read fails with one of these. A connection keeps the
// last error of its file, so real damage after a failed read is only reported after a restart.
bool IsFailedRead(int cause) { return cause == EIO || cause == ENXIO || cause == ERANGE; }

// The operating system's error behind SQLite's "disk I/O error", "unable to open" or "malformed". 0
// if there is none.
int SystemCause(int code, sqlite3* database) {
  const int kind = code & 0xff;
  if (database == nullptr || code == SQLITE_IOERR_SHORT_READ) return 0;
  if (kind == SQLITE_CANTOPEN) return sqlite3_system_errno(database);
  if (kind != SQLITE_IOERR && kind != SQLITE_CORRUPT) return 0;
  // SQLite does not keep the cause of a failed commit, but the files do: the log, or the database.
  int cause = 0;
  sqlite3_file* log = nullptr;
  sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &cause);
  }
  if (cause == 0) sqlite3_file_control(database, "main", SQLITE_FCNTL_LAST_ERRNO, &cause);
  if (kind == SQLITE_CORRUPT) return IsFailedRead(cause) ? cause : 0;
  return cause != 0 ? cause : sqlite3_system_errno(database);
}

// SQLite's result code for a cause, if it has one but reported another.
int KindOf(int code, int cause) {
  switch (cause) {
    case EROFS:
    case EACCES:
    case EPERM:
      return SQLITE_READONLY;
    case EDQUOT:
    case EFBIG:  // beyond `ulimit -f`
      return SQLITE_FULL;
    case EMFILE:
    case ENFILE:
      return SQLITE_IOERR;  // temporary
    default:
      return IsFailedRead(cause) ? SQLITE_IOERR : code & 0xff;
  }
}

}  // namespace

absl::Status SqliteError(int code, sqlite3* database, absl::string_view path) {
  const int cause = SystemCause(code, database);
  const int kind = KindOf(code, cause);
  std::string text = absl::StrCat(
      path, ": ", kind == SQLITE_IOERR ? sqlite3_errstr(kind) : sqlite3_errmsg(database));
  if (cause != 0) absl::StrAppend(&text, ": ", strerror(cause));
  if (IsFailedSync(code)) {
    return absl::UnavailableError(
        absl::StrCat("sync failed: ", text,
                     "; the file cannot be trusted until it is read from the disk again. Nothing "
                     "acknowledged is lost. Check the disk (`dmesg`, and its free space where "
                     "storage is thin), then start the server again"));
  }
  switch (kind) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrCat(
          "disk full: ", text, "; ",
          cause == EFBIG ? "raise the limit of file sizes, `ulimit -f`" : "free some space",
          ", nothing stored is lost"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(
          text,
          "; check the disk and its file system first. If the error stays, restore a backup "
          "(lengthwise_server --restore BACKUP --data_dir NEW) and keep the damaged directory"));
    case SQLITE_IOERR:
      return absl::UnavailableError(absl::StrCat(text, " (SQLite code ", code,
                                                 "); try again, and check the disk (`dmesg`) if "
                                                 "the error stays"));
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return absl::FailedPreconditionError(
          absl::StrCat(text, "; make the data directory writable for the server"));
    default:
      return absl::UnavailableError(absl::StrCat(text, " (SQLite code ", code, ")"));
  }
}

SqliteStatement::~SqliteStatement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void SqliteStatement::Check(int code) {
  if (code != SQLITE_OK && status_.ok()) status_ = connection_->Error(code);
}

void SqliteStatement::BindBytes(int index, absl::string_view bytes, bool is_text) {
  // An empty view may have a null address, which SQLite would take for NULL.
  const char* data = bytes.empty() ? "" : bytes.data();
  const size_t size = bytes.size();
  Check(is_text ? sqlite3_bind_text64(statement_, index, data, size, SQLITE_STATIC, SQLITE_UTF8)
                : sqlite3_bind_blob64(statement_, index, data, size, SQLITE_STATIC));
}

bool SqliteStatement::Step() {
  if (!status_.ok()) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) status_ = connection_->Error(code);
  return false;
}

absl::Status SqliteStatement::Run() {
  while (Step()) {
  }
  return status_;
}

absl::StatusOr<int64_t> Number(SqliteStatement query) {
  const int64_t number = query.Step() ? query.Int(0) : 0;
  if (!query.status().ok()) return query.status();
  return number;
}

absl::string_view SqliteStatement::Bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return absl::string_view(static_cast<const char*>(data), data == nullptr ? 0 : size);
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path,
                                                                         bool read_only) {
  const int flags =
      (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
      SQLITE_OPEN_NOMUTEX;
  // SQLite's memory statistics are unused, and would take a lock for each allocation.
  [[maybe_unused]] static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(path, database));
  if (code != SQLITE_OK) return connection->Error(code);
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, 5000);
  return connection;
}

SqliteConnection::SqliteConnection(std::string path, sqlite3* database)
    : path_(std::move(path)), database_(database) {}

SqliteConnection::~SqliteConnection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

absl::Status SqliteConnection::Error(int code) {
  absl::Status status = SqliteError(code, database_, path_);
  if (first_error_.ok()) first_error_ = status;
  if (IsFailedSync(code) && failed_sync_.ok()) {
    failed_sync_ = status;
    sqlite3_db_config(database_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  return status;
}

bool SqliteConnection::HasMoved() const {
  int moved = 0;
  sqlite3_file_control(database_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

void SqliteConnection::CheckpointAfterCommits(int pages) {
  checkpoint_pages_ = pages;
  sqlite3_wal_hook(database_, AfterCommit, this);
}

void SqliteConnection::Checkpoint() {
  const int code =
      sqlite3_wal_checkpoint_v2(database_, "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (IsFailedSync(code)) Error(code).IgnoreError();
}

int SqliteConnection::AfterCommit(void* connection, sqlite3* /*database*/, const char* /*name*/,
                                  int pages) {
  auto* self = static_cast<SqliteConnection*>(connection);
  if (pages >= self->checkpoint_pages_) self->Checkpoint();
  return SQLITE_OK;
}

SqliteStatement SqliteConnection::Prepare(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  int code = SQLITE_OK;
  if (statement == nullptr) {
    code = sqlite3_prepare_v3(database_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  }
  return SqliteStatement(this, statement, code == SQLITE_OK ? absl::OkStatus() : Error(code));
}

absl::Status SqliteConnection::Execute(const std::string& sql) {
  const int code = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

}  // namespace lengthwise::server
