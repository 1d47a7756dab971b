// The tables, and how a database of an older program becomes one of this.
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_SCHEMA_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_SCHEMA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/storage/sqlite_connection.h"

namespace lengthwise::server {

// What `PRAGMA application_id` says of our files ("Lnwz").
inline constexpr int64_t kApplicationId = 0x4c6e777a;
// The version that this program reads and writes.
inline constexpr int64_t kSchemaVersion = 4;

// What the ids of deleted experiments begin with whose rows are not all gone; no other id has it.
#define LENGTHWISE_DELETED "/"

// Fewer unused pages than this are not worth giving back.
inline constexpr int64_t kFewPages = 1024;

struct UnusedPages {
  int64_t pages = 0;  // of the database
  int64_t unused = 0;
  int64_t page_size = 4096;
  // Whether they can be given back step by step. Databases of older programs need a VACUUM first.
  bool incremental = false;
};
absl::StatusOr<UnusedPages> FindUnusedPages(SqliteConnection& connection);

// Applies the migrations that the database lacks, each in its own transaction. FAILED_PRECONDITION:
// it was written by a newer program, or by something else.
absl::Status Migrate(SqliteConnection& connection);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_SCHEMA_H_
