// Copies a database while others write to it.
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_COPY_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_COPY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace lengthwise::server {

// Copies the database at `from`, as of one moment between the call and the first `progress`, into a
// new file, whole and durable. `progress` is called with the bytes copied and the total; if it
// returns false, the copy ends with CANCELLED. After CANCELLED or an error the caller must delete
// `to`. Errors are those of storage.h.
absl::Status CopyDatabase(const std::string& from, const std::string& to,
                          const std::function<bool(int64_t copied, int64_t total)>& progress);

// Reads the whole database at `path` and checks its structure. DATA_LOSS describes the damage.
absl::Status CheckDatabase(const std::string& path);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_COPY_H_
