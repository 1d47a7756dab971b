// The door to the file system: whole files, atomic replacement, directories, locks. Errors name the
// path and say what the operating system said: NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED
// (disk full), FAILED_PRECONDITION (read-only), UNAVAILABLE otherwise.
#ifndef LENGTHWISE_PLATFORM_FILES_H_
#define LENGTHWISE_PLATFORM_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lengthwise::platform {

// The absl::Status for errno `error` at `action` on `path`.
absl::Status FileError(int error, absl::string_view action, absl::string_view path);

// Makes the directory and those above it, durably. OK also for one that is there.
absl::Status CreateDirectories(const std::string& path);

// Makes what was created, renamed or deleted in a directory durable. After an error a later sync
// may report success although the names are lost: make them again.
absl::Status SyncDirectory(const std::string& path);

// Makes the next reads of a file come from the disk: syncs it and drops its pages from memory.
// After a failed sync the kernel may show from memory what the disk does not have. An error of the
// sync is returned; the pages are dropped nevertheless.
absl::Status DropCachedPages(const std::string& path);

struct FileStatus {
  int64_t size = 0;
  absl::Time modified;
};
absl::StatusOr<FileStatus> GetFileStatus(const std::string& path);

// Names in a directory, sorted; empty for one that does not exist.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Gives a file a second name beside its first (a hard link), durably; what had that name has it no
// more. Not every file system can: an error then says so, and the file must be copied instead.
absl::Status LinkFile(const std::string& from, const std::string& to);

// OK also when there is no such file.
absl::Status DeleteFile(const std::string& path);
// The directory with everything in it. OK also when there is none. Links are not followed.
absl::Status DeleteTree(const std::string& path);

// Calls `take` with the file's bytes in chunks of at most 1 MiB; stops early when it returns false.
absl::Status ReadFileInChunks(const std::string& path,
                              const std::function<bool(absl::string_view)>& take);
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes a file that appears whole or not at all: bytes go to a temporary file beside it, Commit
// makes them durable and then gives them their name. Without Commit the temporary file is deleted.
// After an error of Commit write a new file: a second sync of the same one proves nothing.
// Not thread-safe.
class AtomicFile {
 public:
  // The temporary file is "<path>.<unique>.tmp", so that several writers of one path do not meet.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  absl::Status Append(absl::string_view data);
  absl::Status Commit();

 private:
  AtomicFile(int descriptor, std::string path, std::string temporary);

  int descriptor_;
  const std::string path_;
  const std::string temporary_;
};

inline constexpr absl::string_view kTemporarySuffix = ".tmp";

absl::Status WriteFileAtomically(const std::string& path, absl::string_view data);

// An exclusive lock on a file, held until destruction; the operating system releases it when the
// process dies.
class FileLock {
 public:
  // ABORTED when another holds it.
  static absl::StatusOr<std::unique_ptr<FileLock>> Acquire(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_FILES_H_
