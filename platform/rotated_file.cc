#include "platform/rotated_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "platform/status_macros.h"

namespace lengthwise::platform {
namespace {

// Writes all lines or, to a regular file, none. `size` is the file's size before the write.
absl::Status Write(int descriptor, bool regular, off_t size, const std::string& path,
                   absl::string_view lines) {
  while (!lines.empty()) {
    const ssize_t count = write(descriptor, lines.data(), lines.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      // Truncates, which needs no space: a partial line would corrupt the next one.
      if (regular && ftruncate(descriptor, size) != 0) return FileError(errno, "truncate", path);
      return FileError(error, "write", path);
    }
    lines.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status Rotate(const RotatedFile& file) {
  const auto part = [&](int number) { return absl::StrCat(file.path, ".", number); };
  if (file.files <= 1) return DeleteFile(file.path);
  for (int number = file.files - 2; number >= 1; --number) {
    if (rename(part(number).c_str(), part(number + 1).c_str()) != 0 && errno != ENOENT) {
      return FileError(errno, "rename", part(number));
    }
  }
  if (rename(file.path.c_str(), part(1).c_str()) == 0) return absl::OkStatus();
  return FileError(errno, "rename", file.path);
}

// Makes one attempt. Returns false if the file was renamed in the meantime, by this or another
// process.
absl::StatusOr<bool> TryAppend(const RotatedFile& file, absl::string_view lines, int descriptor) {
  // Closing the descriptor releases the lock.
  while (flock(descriptor, LOCK_EX) != 0) {
    if (errno != EINTR) return FileError(errno, "lock", file.path);
  }
  struct stat mine, named;
  if (fstat(descriptor, &mine) != 0) return FileError(errno, "read", file.path);
  const bool regular = S_ISREG(mine.st_mode);
  if (regular) {
    if (stat(file.path.c_str(), &named) != 0 || named.st_ino != mine.st_ino ||
        named.st_dev != mine.st_dev) {
      return false;
    }
    if (mine.st_size > 0 && mine.st_size + static_cast<int64_t>(lines.size()) > file.max_bytes) {
      RETURN_IF_ERROR(Rotate(file));
      return false;
    }
  }
  RETURN_IF_ERROR(Write(descriptor, regular, mine.st_size, file.path, lines));
  return true;
}

}  // namespace

absl::Status AppendLines(const RotatedFile& file, absl::string_view lines) {
  // Bounds the retries, although another process rarely rotates the file first twice in a row.
  for (int attempt = 0; attempt < 100; ++attempt) {
    // O_NONBLOCK: a pipe without a reader is an error and does not block the caller.
    const Descriptor descriptor(
        open(file.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
    if (!descriptor.is_open()) return FileError(errno, "open", file.path);
    ASSIGN_OR_RETURN(const bool done, TryAppend(file, lines, descriptor.get()));
    if (done) return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("cannot write ", file.path, ": other processes rotate it all the time"));
}

}  // namespace lengthwise::platform
