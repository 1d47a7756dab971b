#include <sqlite3.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "server/storage/backup_manifest.h"
#include "server/storage/sqlite_connection.h"
#include "server/storage/sqlite_schema.h"

namespace lengthwise::server {
namespace {

// Pages between two calls of `progress`.
constexpr int kPagesAtOnce = 1024;

}  // namespace

absl::Status CopyDatabase(const std::string& from, const std::string& to,
                          const std::function<bool(int64_t copied, int64_t total)>& progress) {
  ASSIGN_OR_RETURN(const auto source, SqliteConnection::Open(from, /*read_only=*/true));
  ASSIGN_OR_RETURN(const auto copy, SqliteConnection::Open(to, /*read_only=*/false));
  // A read transaction pins the state. Without it, each commit of another connection would restart
  // the copy.
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
    const int64_t total = sqlite3_backup_pagecount(backup);
    wanted = progress((total - sqlite3_backup_remaining(backup)) * page_size, total * page_size);
  }
  sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE && code != SQLITE_OK) {
    return SqliteError(code, copy->database(), to);
  }
  if (!wanted) return absl::CancelledError("the backup was cancelled");
  // A single file, without a log beside it.
  return copy->Execute("PRAGMA journal_mode = DELETE");
}

absl::Status CheckDatabase(const std::string& path) {
  // Opened for writing: a database that was not closed properly has a log to apply.
  ASSIGN_OR_RETURN(const auto database, SqliteConnection::Open(path, /*read_only=*/false));
  ASSIGN_OR_RETURN(const int64_t application, Number(database->Query("PRAGMA application_id")));
  if (application != kApplicationId) {
    return absl::DataLossError(absl::StrCat(path, " was not made by lengthwise_server"));
  }
  SqliteStatement check = database->Query("PRAGMA integrity_check(1)");
  const std::string result = check.Step() ? check.String(0) : "";
  RETURN_IF_ERROR(check.status());
  if (result != "ok") return absl::DataLossError(absl::StrCat(path, " is damaged: ", result));
  return absl::OkStatus();
}

}  // namespace lengthwise::server
