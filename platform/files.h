// File system access: whole files, atomic replacement, directories, copies for backups, temporary
// files and locks. Errors name the path and the operating system's reason: NOT_FOUND,
// PERMISSION_DENIED, RESOURCE_EXHAUSTED (disk full), FAILED_PRECONDITION (read-only, a loop of
// links), otherwise UNAVAILABLE.
#ifndef LENGTHWISE_PLATFORM_FILES_H_
#define LENGTHWISE_PLATFORM_FILES_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/descriptors.h"

namespace lengthwise::platform {

// Returns the status for errno `error` of `action` on `path`.
absl::Status FileError(int error, absl::string_view action, absl::string_view path);

// Returns the path of the directory that a file is in: "a" for "a/b", "." for "b".
std::string DirectoryOf(const std::string& path);

// Creates the directory, durably. OK if it already exists.
absl::Status CreateDirectory(const std::string& path);
// As CreateDirectory, with its parents.
absl::Status CreateDirectories(const std::string& path);

// Makes creations, renames and deletions in a directory durable. After an error, a later sync may
// succeed although the names are lost: create them again.
absl::Status SyncDirectory(const std::string& path);

// Syncs a file and drops its pages from the page cache, so that the next reads come from the disk:
// after a failed sync, the cache may hold data that the disk lacks. Returns the sync's error, but
// drops the pages in any case.
absl::Status DropCachedPages(const std::string& path);

struct FileStatus {
  int64_t size = 0;
  absl::Time modified;
  ino_t inode = 0;
  bool operator==(const FileStatus&) const = default;
};
absl::StatusOr<FileStatus> GetFileStatus(const std::string& path);

// Returns the sorted names in a directory; empty if it does not exist.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Deletes a file. OK if there is none.
absl::Status DeleteFile(const std::string& path);
// Deletes a directory with its contents, without following links. OK if there is none.
absl::Status DeleteTree(const std::string& path);

// Opens a file for reading. FAILED_PRECONDITION if it is not a regular file: a pipe or a device may
// never answer or never end.
absl::StatusOr<Descriptor> OpenForReading(const std::string& path);

// Passes the file's bytes to `take` in chunks of at most 1 MiB. Stops if `take` returns false.
absl::Status ReadFileInChunks(const std::string& path,
                              const std::function<bool(absl::string_view)>& take);

// More than settings and certificates have. A wrong file does not fill the memory.
inline constexpr int64_t kMostTextBytes = int64_t{1} << 20;
// Returns a file's contents. FAILED_PRECONDITION if it has more than `most_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes = kMostTextBytes);

// Writes a file atomically: it appears whole or not at all. Bytes go to a temporary file in the
// same directory; Commit makes them durable and then renames the file. Without Commit the temporary
// file is deleted. After a failed Commit, write a new file: a second sync of the same one may
// succeed although the bytes are lost. Not thread-safe.
class AtomicFile {
 public:
  // The temporary file is "<path>.<unique>.tmp", so concurrent writers of one path do not collide.
  // FAILED_PRECONDITION if a pipe or a device has this path.
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(const std::string& path);
  ~AtomicFile();

  absl::Status Append(absl::string_view data);
  absl::Status Commit();
  // Commit for files whose directory is synced later (SyncDirectory), which makes the name durable.
  absl::Status Place();

 private:
  AtomicFile(Descriptor descriptor, std::string path, std::string temporary);

  Descriptor descriptor_;  // open until the file has its name
  const std::string path_;
  const std::string temporary_;
};

inline constexpr absl::string_view kTemporarySuffix = ".tmp";
// Removes "name.XXXXXX.tmp" down to "name"; empty for other names.
absl::string_view WithoutTemporarySuffix(absl::string_view name);
// Deletes what killed writers of a file left behind. Only while nobody writes it.
absl::Status DeleteTemporaryFilesOf(const std::string& path);

absl::Status WriteFileAtomically(const std::string& path, absl::string_view data);

// The names of copies are durable only after SyncDirectory. Backups copy many files and make them
// durable with one SyncFileSystem.

// Copies a file as an AtomicFile, which only its owner can read, and passes its bytes to `see` in
// order.
absl::Status CopyFile(const std::string& from, const std::string& to,
                      const std::function<void(absl::string_view)>& see = nullptr);

// Hard-links a file to a new name, or copies it if the file system does not support links.
absl::Status LinkOrCopyFile(const std::string& from, const std::string& to);

// Makes all writes to the file system of `path` durable.
absl::Status SyncFileSystem(const std::string& path);

// Renames a directory durably. Its contents must already be durable. Fails if `to` exists, unless
// it is an empty directory.
absl::Status MoveDirectory(const std::string& from, const std::string& to);

// Space of the file system of `path`.
struct DiskSpace {
  int64_t free_bytes = 0;  // that this process can still write
  int64_t size_bytes = 0;
};
absl::StatusOr<DiskSpace> GetDiskSpace(const std::string& path);

// Takes the disk's space for the first `bytes` of a file, which is created if there is none.
absl::Status AllocateFile(const std::string& path, int64_t bytes);

// An unnamed temporary file. No other process can open it by name, and it disappears when it is
// closed or the process dies. Thread-safe for ranges that do not overlap.
class TemporaryFile {
 public:
  // Creates the file on the file system of `directory`, which must exist.
  static absl::StatusOr<std::unique_ptr<TemporaryFile>> Create(const std::string& directory);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  absl::Status Write(int64_t offset, absl::string_view data);
  // DATA_LOSS if the file is shorter.
  absl::StatusOr<std::string> Read(int64_t offset, int64_t size) const;
  // The first `size` bytes, which must have been written, without a copy in memory: the kernel
  // reads them when they are used. `size` is positive. Valid until the next call of Map and while
  // this object lives.
  absl::StatusOr<absl::string_view> Map(int64_t size);

 private:
  TemporaryFile(Descriptor descriptor, std::string directory)
      : descriptor_(std::move(descriptor)), directory_(std::move(directory)) {}

  const Descriptor descriptor_;
  const std::string directory_;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};

// A lock on a file, held until destruction. The operating system releases it if the process dies.
// The holder can say in the file who it is.
class FileLock {
 public:
  // Exclusively. Empties the file. ABORTED if the lock is already held.
  static absl::StatusOr<std::unique_ptr<FileLock>> Acquire(const std::string& path);
  // Beside others that share it. ABORTED if it is held exclusively.
  static absl::StatusOr<std::unique_ptr<FileLock>> Share(const std::string& path);
  // Makes a shared lock exclusive. False if others share it; this one may then be lost.
  bool TakeAlone();

  // Writes this process's id, where it is one, the host's name, a line end and `text` to the file,
  // which from then on only its owner can read. Replaces an earlier text. Not durable: nobody
  // trusts the file without its lock.
  absl::Status Describe(absl::string_view text);

  struct Holder {
    // 0: it is one of another machine or container.
    pid_t process = 0;
    // Empty if an earlier release wrote the file.
    std::string host;
    std::string text;
  };
  // Returns what the holder wrote. nullopt if it wrote nothing, and if its process does not exist.
  // Call it after Acquire returned ABORTED: without the lock, the text may be of an earlier holder.
  static std::optional<Holder> ReadHolder(const std::string& path);

 private:
  FileLock(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  static absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, int kind);

  const Descriptor descriptor_;
  const std::string path_;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_FILES_H_
