#include "client/display/user_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "platform/files.h"

namespace lengthwise::client {
namespace {

namespace fs = std::filesystem;

// Never UNAVAILABLE, because callers read that as an unreachable server.
absl::Status Unwritten(int error, const std::string& path) {
  const absl::Status status = platform::FileError(error, "write", path);
  absl::string_view advice;
  if (error == ENOENT || error == ENOTDIR) advice = "; make its directory, or name another file";
  if (error == EISDIR) advice = "; name a file in it";
  if (error == EACCES || error == EPERM || error == EROFS) advice = "; name another file";
  return absl::FailedPreconditionError(absl::StrCat(status.message(), advice));
}

// Returns 0 or errno.
int Write(const std::string& path, absl::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (file.good()) return 0;
  return errno != 0 ? errno : EIO;
}

}  // namespace

absl::Status CheckWritable(const std::string& path) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (there.type() == fs::file_type::directory) return Unwritten(EISDIR, path);
  const bool is_there = there.type() != fs::file_type::not_found;
  const std::string written = is_there ? path : platform::DirectoryOf(path);
  return access(written.c_str(), W_OK) == 0 ? absl::OkStatus() : Unwritten(errno, path);
}

absl::Status WriteForUser(const std::string& path, absl::string_view text) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  const bool is_new = there.type() == fs::file_type::not_found;
  // A temporary file and a rename do not work for a device or a pipe, nor in a directory that the
  // user may not write to.
  const bool beside = is_new || (there.type() == fs::file_type::regular &&
                                 access(platform::DirectoryOf(path).c_str(), W_OK) == 0);
  if (!beside) {
    const int failure = Write(path, text);
    return failure == 0 ? absl::OkStatus() : Unwritten(failure, path);
  }
  std::string target = path;
  if (fs::is_symlink(path, error)) target = fs::weakly_canonical(path, error).string();
  const std::string part = absl::StrCat(target, ".", getpid(), ".part");
  if (const int failure = Write(part, text); failure != 0) {
    fs::remove(part, error);
    return Unwritten(failure, path);
  }
  if (!is_new) fs::permissions(part, there.permissions(), error);
  fs::rename(part, target, error);
  if (!error) return absl::OkStatus();
  const int failure = error.value();
  fs::remove(part, error);
  return Unwritten(failure, path);
}

}  // namespace lengthwise::client
