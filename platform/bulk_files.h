// Many files at once, made durable together: for backups. Errors are those of files.h.
#ifndef LENGTHWISE_PLATFORM_BULK_FILES_H_
#define LENGTHWISE_PLATFORM_BULK_FILES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// Copies a file to a new one; `see` is given its bytes on the way, in order. Durable only after
// SyncFileSystem.
absl::Status CopyFile(const std::string& from, const std::string& to,
                      const std::function<void(absl::string_view)>& see = nullptr);

// Gives a file a second name, or copies it where the file system has no such thing. Durable only
// after SyncFileSystem.
absl::Status LinkOrCopyFile(const std::string& from, const std::string& to);

// Makes everything durable that was written to the file system on which `path` lies.
absl::Status SyncFileSystem(const std::string& path);

// Gives a directory another name, durably, once what is in it is durable. What has the name
// already, but for an empty directory, is an error.
absl::Status MoveDirectory(const std::string& from, const std::string& to);

// What is free for this process on the file system on which `path` lies.
absl::StatusOr<int64_t> FreeBytes(const std::string& path);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_BULK_FILES_H_
