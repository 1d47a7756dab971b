#include "platform/bulk_files.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "platform/failpoint.h"
#include "platform/files.h"
#include "platform/status_macros.h"

namespace lengthwise::platform {
namespace {

absl::Status WriteAll(int descriptor, absl::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t written = write(descriptor, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(errno, "write", path);
    data.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CopyFile(const std::string& from, const std::string& to,
                      const std::function<void(absl::string_view)>& see) {
  // Checked before creating `to`: an empty copy would be taken for the file.
  RETURN_IF_ERROR(GetFileStatus(from).status());
  const int descriptor = open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0) return FileError(errno, "make", to);
  absl::Status written;
  absl::Status status = ReadFileInChunks(from, [&](absl::string_view chunk) {
    if (see) see(chunk);
    written = WriteAll(descriptor, chunk, to);
    return written.ok();
  });
  if (status.ok()) status = written;
  if (status.ok() && fsync(descriptor) != 0) status = FileError(errno, "sync", to);
  if (close(descriptor) != 0 && status.ok()) status = FileError(errno, "write", to);
  if (!status.ok()) unlink(to.c_str());
  return status;
}

absl::Status LinkOrCopyFile(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno == ENOENT || errno == EEXIST || errno == ENOSPC) {
    return FileError(errno, absl::StrCat("link ", from, " as"), to);
  }
  return CopyFile(from, to);
}

absl::Status SyncFileSystem(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return FileError(errno, "open", path);
  const int result = syncfs(descriptor);
  const int error = errno;
  close(descriptor);
  return result == 0 ? absl::OkStatus() : FileError(error, "sync the file system of", path);
}

absl::Status MoveDirectory(const std::string& from, const std::string& to) {
  LENGTHWISE_FAILPOINT_OR_RETURN("directory.rename.before");
  if (rename(from.c_str(), to.c_str()) != 0) {
    return FileError(errno, absl::StrCat("rename ", from, " to"), to);
  }
  LENGTHWISE_FAILPOINT("directory.rename.after");
  const std::string parent = std::filesystem::path(to).parent_path().string();
  absl::Status synced = SyncDirectory(parent.empty() ? "." : parent);
  // Undoes the rename, so that `to` does not exist after any error.
  if (!synced.ok()) rename(to.c_str(), from.c_str());
  return synced;
}

absl::StatusOr<int64_t> FreeBytes(const std::string& path) {
  struct statvfs status = {};
  if (statvfs(path.c_str(), &status) != 0) return FileError(errno, "look at", path);
  return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_frsize);
}

}  // namespace lengthwise::platform
