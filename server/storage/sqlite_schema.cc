#include "server/storage/sqlite_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"

namespace lengthwise::server {

absl::StatusOr<UnusedPages> FindUnusedPages(SqliteConnection& connection) {
  SqliteStatement query = connection.Query(
      "SELECT page_count, freelist_count, page_size, auto_vacuum FROM pragma_page_count, "
      "pragma_freelist_count, pragma_page_size, pragma_auto_vacuum");
  UnusedPages found;
  if (query.Step()) {
    constexpr int kIncremental = 2;
    found = {.pages = query.Int(0),
             .unused = query.Int(1),
             .page_size = query.Int(2),
             .incremental = query.Int(3) == kIncremental};
  }
  RETURN_IF_ERROR(query.Run());
  return found;
}

absl::StatusOr<int64_t> SchemaVersion(SqliteConnection& connection) {
  ASSIGN_OR_RETURN(const int64_t application, Number(connection.Query("PRAGMA application_id")));
  ASSIGN_OR_RETURN(const int64_t tables,
                   Number(connection.Query("SELECT count(*) FROM sqlite_schema")));
  if (tables > 0 && application != kApplicationId) {
    return absl::FailedPreconditionError(
        "the database in the data directory was not made by lengthwise_server; choose another "
        "data directory");
  }
  if (tables == 0) return 0;
  ASSIGN_OR_RETURN(const int64_t version,
                   Number(connection.Query("SELECT max(version) FROM schema_migrations")));
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the database has schema version ", version, ", this program knows ",
                     kSchemaVersion, "; use the newer lengthwise_server that wrote it"));
  }
  return version;
}

absl::Status Migrate(SqliteConnection& connection) {
  ASSIGN_OR_RETURN(int64_t version, SchemaVersion(connection));
  if (version == 0) {
    // Not in other cases: even the same value would be written.
    RETURN_IF_ERROR(connection.Execute(
        absl::StrCat("PRAGMA application_id = ", kApplicationId,
                     "; CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, "
                     "apply_time INTEGER NOT NULL)")));
  }
  for (; version < kSchemaVersion; ++version) {
    LENGTHWISE_FAILPOINT_OR_RETURN("storage.migration.before");
    const absl::Status status = connection.Execute(absl::StrCat(
        "BEGIN IMMEDIATE;", kMigrations[version], "INSERT INTO schema_migrations VALUES (",
        version + 1, ", CAST(strftime('%s', 'now') AS INTEGER) * 1000000); COMMIT"));
    if (!status.ok()) {
      if (connection.InTransaction()) connection.Execute("ROLLBACK").IgnoreError();
      return status;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> DescribeUpgrade(const std::string& path) {
  ASSIGN_OR_RETURN(const auto connection, SqliteConnection::Open(path, /*read_only=*/true));
  ASSIGN_OR_RETURN(const int64_t version, SchemaVersion(*connection));
  if (version == kSchemaVersion) {
    return absl::StrCat(path, " has schema version ", version,
                        ", as this release: its start does not change it");
  }
  return absl::StrCat(path, " has schema version ", version,
                      ": the start of this release upgrades it to ", kSchemaVersion,
                      ", and older releases do not open it from then on; make a backup first");
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
