// The store in one SQLite file, with a write-ahead log and synchronous=FULL (an fsync at each
// commit).
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

// Ends the process with exit code 1. `reason` is its last log line.
void StopProcess(const absl::Status& reason);

struct SqliteOptions {
  // Maximum size of the database in bytes. A write beyond it fails as on a full disk. 0: no limit.
  int64_t max_bytes = 0;
  // Called when this process must not write the database any more; the status says why and what to
  // do. The store refuses all further transactions. Default: logs the error and ends the process
  // with exit code 1.
  // - A sync failed, in a Commit. The kernel may have dropped pages that it could not write and
  //   report success later. OpenSqliteStorage reads the files back from the disk.
  // - At a Begin, another process has opened the database since, or the file is gone.
  std::function<void(const absl::Status&)> on_lost = StopProcess;
};

// Opens or creates a database, from what is on the disk and not from the kernel's page cache. The
// database belongs to the process that opened it last.
// FAILED_PRECONDITION if it cannot be written or belongs to a newer release; DATA_LOSS if it is
// damaged.
absl::StatusOr<std::unique_ptr<Storage>> OpenSqliteStorage(const std::string& path,
                                                           const SqliteOptions& options = {});

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_STORAGE_H_
