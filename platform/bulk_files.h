// Copies many files and makes them durable with one sync, for backups. Errors are those of files.h.
#ifndef LENGTHWISE_PLATFORM_BULK_FILES_H_
#define LENGTHWISE_PLATFORM_BULK_FILES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// Copies a file to a new one and passes its bytes to `see` in order. Durable only after
// SyncFileSystem.
absl::Status CopyFile(const std::string& from, const std::string& to,
                      const std::function<void(absl::string_view)>& see = nullptr);

// Hard-links a file, or copies it if the file system does not support links. Durable only after
// SyncFileSystem.
absl::Status LinkOrCopyFile(const std::string& from, const std::string& to);

// Makes all writes to the file system of `path` durable.
absl::Status SyncFileSystem(const std::string& path);

// Renames a directory durably. Its contents must already be durable. Fails if `to` exists, unless
// it is an empty directory.
absl::Status MoveDirectory(const std::string& from, const std::string& to);

// Returns the bytes that this process can still write to the file system of `path`.
absl::StatusOr<int64_t> FreeBytes(const std::string& path);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_BULK_FILES_H_
