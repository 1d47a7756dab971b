// The store in one SQLite file: write-ahead log, synchronous=FULL (an fsync at each commit).
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_STORAGE_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_STORAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Ends the process with exit code 1; `reason` is its last log line.
void StopProcess(const absl::Status& reason);

struct SqliteOptions {
  // Largest size of the database, bytes; what would pass it fails as a full disk does. 0: no limit.
  int64_t max_bytes = 0;
  // Called by the Commit in which a sync failed, with what to do about it. The kernel may have
  // dropped what it could not write and report success later, so the store refuses every further
  // transaction; OpenSqliteStorage reads the files back from the disk. Default: writes the error to
  // the log and ends the process with exit code 1.
  std::function<void(const absl::Status&)> on_failed_sync = StopProcess;
};

// Opens or makes a database, from what the disk has and not from the kernel's memory of it.
// FAILED_PRECONDITION: it cannot be written, or is of a newer program; DATA_LOSS: damaged.
absl::StatusOr<std::unique_ptr<Storage>> OpenSqliteStorage(const std::string& path,
                                                           const SqliteOptions& options = {});

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_STORAGE_H_
