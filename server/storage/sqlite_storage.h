// The store in one SQLite file: write-ahead log, synchronous=FULL (an fsync at each commit).
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_STORAGE_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_STORAGE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

struct SqliteOptions {
  // Largest size of the database, bytes; what would pass it fails as a full disk does. 0: no limit.
  int64_t max_bytes = 0;
};

// Opens or makes a database. FAILED_PRECONDITION: it cannot be written, or is of a newer program;
// DATA_LOSS: damaged.
absl::StatusOr<std::unique_ptr<Storage>> OpenSqliteStorage(const std::string& path,
                                                           const SqliteOptions& options = {});

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_STORAGE_H_
