// A copy of a database that others write meanwhile.
#ifndef LENGTHWISE_SERVER_STORAGE_SQLITE_COPY_H_
#define LENGTHWISE_SERVER_STORAGE_SQLITE_COPY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace lengthwise::server {

// Copies the database at `from`, as it is at one moment between the call and the first `progress`,
// into a new file, whole and durable. `progress` hears bytes done and to do; when it returns false
// the copy ends with CANCELLED. What was written of `to` then, or after an error, is the caller's
// to delete. Errors are those of storage.h.
absl::Status CopyDatabase(const std::string& from, const std::string& to,
                          const std::function<bool(int64_t copied, int64_t total)>& progress);

// Reads the whole database at `path` and checks its structure. DATA_LOSS says what is wrong.
absl::Status CheckDatabase(const std::string& path);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_SQLITE_COPY_H_
