#include "platform/private_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/descriptors.h"
#include "platform/files.h"
#include "platform/private_files.h"
#include "platform/status_macros.h"

namespace lengthwise::platform {
namespace {

constexpr size_t kMostPathBytes = sizeof(sockaddr_un::sun_path) - 1;
// A server listens within this time of making its socket.
constexpr absl::Duration kStartsWithin = absl::Minutes(1);

// gRPC takes an address as a URI, in which other characters mean something else.
bool IsPlain(const std::string& path) {
  return absl::c_all_of(
      path, [](char c) { return absl::ascii_isalnum(c) || std::strchr("/._-", c) != nullptr; });
}

absl::Status MakeDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return FileError(errno, "create", directory);
  }
  struct stat status;
  if (lstat(directory.c_str(), &status) != 0) return FileError(errno, "read", directory);
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is no directory of this user alone (mode 0700)"));
  }
  return CheckPrivateDirectory(directory);
}

// Calls `call`, bind or connect, with a new socket and the address of `path`. Returns its errno.
int CallWith(const std::string& path, int (*call)(int, const sockaddr*, socklen_t)) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() > kMostPathBytes) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result = call(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  return result == 0 ? 0 : errno;
}

// Deletes sockets of servers that were killed. A server that is starting has one on which it does
// not listen yet.
void DeleteStale(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    struct stat status;
    if (lstat(entry.path().c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    if (absl::Now() - absl::TimeFromTimespec(status.st_mtim) < kStartsWithin) continue;
    if (CallWith(entry.path(), connect) == ECONNREFUSED) unlink(entry.path().c_str());
  }
}

// Fails as a server would that listens there.
absl::Status Try(const std::string& path) {
  if (path.size() > kMostPathBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is longer than ", kMostPathBytes, " bytes"));
  }
  if (!IsPlain(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has other characters than letters, digits and /._-"));
  }
  RETURN_IF_ERROR(MakeDirectory(DirectoryOf(path)));
  DeleteStale(DirectoryOf(path));
  unlink(path.c_str());
  const int error = CallWith(path, bind);
  return error == 0 ? DeleteFile(path) : FileError(error, "make a socket at", path);
}

}  // namespace

absl::StatusOr<std::string> PrivateSocketPath(const std::string& name) {
  std::vector<std::string> reasons;
  const char* const places[] = {std::getenv("TMPDIR"), "/tmp", std::getenv("XDG_RUNTIME_DIR")};
  for (const char* place : places) {
    if (place == nullptr || *place != '/') continue;
    const std::string path = absl::StrCat(place, "/lengthwise-", geteuid(), "/", name);
    const absl::Status status = Try(path);
    if (status.ok()) return path;
    reasons.emplace_back(status.message());
  }
  return absl::FailedPreconditionError(
      absl::StrCat("there is no place for the server's socket: ", absl::StrJoin(reasons, "; "),
                   "; set TMPDIR to a directory of your own on a local disk"));
}

}  // namespace lengthwise::platform
