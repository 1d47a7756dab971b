// The tables, and the migration of databases of older releases.
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_SCHEMA_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_SCHEMA_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/sqlite_connection.h"

namespace lengthwise::server {

// `PRAGMA application_id` of our files ("Lnwz").
inline constexpr int64_t kApplicationId = 0x4c6e777a;
// The schema version that this release reads and writes.
inline constexpr int64_t kSchemaVersion = 10;
// The files of schema/: N.sql upgrades a database from version N - 1. Never change a released one:
// add the next. Times are microseconds since 1970, 0 for "not yet".
extern const char* const kMigrations[kSchemaVersion];

// First character of the ids of deleted experiments that still have rows. No other id starts with
// it.
#define LENGTHWISE_DELETED "/"

// Fewer unused pages than this are not worth returning to the file system.
inline constexpr int64_t kFewPages = 1024;

struct UnusedPages {
  int64_t pages = 0;  // pages of the database
  int64_t unused = 0;
  int64_t page_size = 4096;
  // True if they can be returned step by step. Databases of older releases need a VACUUM first.
  bool incremental = false;
};
absl::StatusOr<UnusedPages> FindUnusedPages(SqliteConnection& connection);

// The database's schema version, 0 for an empty one. FAILED_PRECONDITION if a newer release or
// another program wrote the database.
absl::StatusOr<int64_t> SchemaVersion(SqliteConnection& connection);

// Applies the missing migrations, each in its own transaction. Errors are those of SchemaVersion.
absl::Status Migrate(SqliteConnection& connection);

// Says what Migrate would do to the database in the file `path`, and changes nothing. A server may
// be using it. Errors are those of SchemaVersion, and of a file that cannot be opened.
absl::StatusOr<std::string> DescribeUpgrade(const std::string& path);

// Reads the whole database at `path` and checks its structure. DATA_LOSS describes the damage.
absl::Status CheckDatabase(const std::string& path);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_SCHEMA_H_
