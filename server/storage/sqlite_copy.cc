#include "server/storage/sqlite_copy.h"

#include <sqlite3.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_schema.h"

namespace lengthwise::server {
namespace {

// Pages between two calls of `progress`.
constexpr int kPagesAtOnce = 1024;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

absl::StatusOr<Database> OpenDatabase(const std::string& path, int flags) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  Database opened(database);
  if (code != SQLITE_OK) return SqliteError(code, database, path);
  sqlite3_busy_timeout(database, 5000);
  return opened;
}

absl::Status Run(sqlite3* database, const char* sql, const std::string& path) {
  const int code = sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : SqliteError(code, database, path);
}

}  // namespace

absl::Status CopyDatabase(const std::string& from, const std::string& to,
                          const std::function<bool(int64_t copied, int64_t total)>& progress) {
  ASSIGN_OR_RETURN(Database source, OpenDatabase(from, SQLITE_OPEN_READONLY));
  ASSIGN_OR_RETURN(Database copy, OpenDatabase(to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  // A read transaction pins the state. Without it, each commit of another connection would restart
  // the copy.
  RETURN_IF_ERROR(Run(source.get(), "BEGIN; SELECT count(*) FROM sqlite_schema;", from));
  int64_t page_size = 4096;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(source.get(), "PRAGMA page_size", -1, &statement, nullptr) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW) {
    page_size = sqlite3_column_int64(statement, 0);
  }
  sqlite3_finalize(statement);

  sqlite3_backup* backup = sqlite3_backup_init(copy.get(), "main", source.get(), "main");
  if (backup == nullptr) {
    return SqliteError(sqlite3_errcode(copy.get()), copy.get(), to);
  }
  int code = SQLITE_OK;
  bool wanted = true;
  while (wanted && (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED)) {
    code = sqlite3_backup_step(backup, kPagesAtOnce);
    const int64_t total = sqlite3_backup_pagecount(backup);
    wanted = progress((total - sqlite3_backup_remaining(backup)) * page_size, total * page_size);
  }
  sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE && code != SQLITE_OK) {
    return SqliteError(code, copy.get(), to);
  }
  if (!wanted) return absl::CancelledError("the backup was cancelled");
  // A single file, without a log beside it.
  return Run(copy.get(), "PRAGMA journal_mode = DELETE", to);
}

absl::Status CheckDatabase(const std::string& path) {
  // Opened for writing: a database that was not closed properly has a log to apply.
  ASSIGN_OR_RETURN(Database database, OpenDatabase(path, SQLITE_OPEN_READWRITE));
  const auto first_value = [&](const char* sql) -> absl::StatusOr<std::string> {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(database.get(), sql, -1, &statement, nullptr);
    std::string value;
    if (code == SQLITE_OK) {
      code = sqlite3_step(statement);
      if (code == SQLITE_ROW) {
        value = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
      }
    }
    sqlite3_finalize(statement);
    if (code == SQLITE_ROW) return value;
    return SqliteError(code, database.get(), path);
  };
  ASSIGN_OR_RETURN(const std::string application, first_value("PRAGMA application_id"));
  if (application != absl::StrCat(kApplicationId)) {
    return absl::DataLossError(absl::StrCat(path, " was not made by lengthwise_server"));
  }
  ASSIGN_OR_RETURN(const std::string result, first_value("PRAGMA integrity_check(1)"));
  if (result != "ok") return absl::DataLossError(absl::StrCat(path, " is damaged: ", result));
  return absl::OkStatus();
}

}  // namespace lengthwise::server
