#include "platform/private_files.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "platform/descriptors.h"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"

namespace lengthwise::platform {
namespace {

constexpr int kMaxLinks = 40;  // same limit as the kernel's

std::string UserName(uid_t user) {
  const passwd* entry = getpwuid(user);  // NOLINT(concurrency-mt-unsafe): copied at once
  return entry == nullptr ? absl::StrCat(user) : entry->pw_name;
}

// Returns true for a group with the user's name and no other member. Debian's adduser creates one
// for every user.
bool IsOwnGroup(gid_t id) {
  const struct group* entry = getgrgid(id);  // NOLINT(concurrency-mt-unsafe)
  if (entry == nullptr) return false;
  const std::string name = entry->gr_name;
  bool alone = true;
  for (char** member = entry->gr_mem; *member != nullptr; ++member) alone &= name == *member;
  return alone && name == UserName(geteuid());
}

bool OthersMayWrite(const struct stat& status) {
  return (status.st_mode & S_IWOTH) != 0 ||
         ((status.st_mode & S_IWGRP) != 0 && !IsOwnGroup(status.st_gid));
}

// In a user namespace that does not map all users, the kernel shows one id for all unmapped users,
// including root.
std::optional<uid_t> UnmappedUser() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, count = 0;
  if (!(map >> inside >> outside >> count) || count >= UINT32_MAX) return std::nullopt;
  std::ifstream overflow("/proc/sys/kernel/overflowuid");
  uid_t user = 0;
  if (!(overflow >> user)) return std::nullopt;
  return user;
}

bool IsTrustedOwner(uid_t user) { return user == 0 || user == geteuid() || user == UnmappedUser(); }

absl::Status BadOwner(const std::string& path, uid_t owner) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, " belongs to the user ", UserName(owner),
                   ", who could replace its contents; run `chown -h ", UserName(geteuid()), " ",
                   ShellWord(path), "` as root, or run this program as that user"));
}

absl::Status OpenToOthers(const std::string& path, const struct stat& status) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "other users may write to %s (mode %04o) and could replace its contents; run `chmod go-w "
      "%s`",
      path, status.st_mode & 07777, ShellWord(path)));
}

// Walks a path like the kernel and checks each directory before entering it.
class Walk {
 public:
  absl::StatusOr<Descriptor> Open(const std::string& directory) {
    std::error_code error;
    const std::string absolute = std::filesystem::absolute(directory, error).string();
    if (error) return FileError(error.value(), "find", directory);
    absl::Status status = GoToRoot();
    Push(absolute);
    while (status.ok() && !left_.empty()) {
      const std::string name = std::exchange(left_.back(), "");
      left_.pop_back();
      if (name.empty() || name == ".") continue;
      status = Enter(name);
    }
    RETURN_IF_ERROR(status);
    if (OthersMayWrite(status_)) return OpenToOthers(path_.string(), status_);
    return std::move(current_);
  }

 private:
  void Push(absl::string_view path) {
    std::vector<std::string> names = absl::StrSplit(path, '/');
    left_.insert(left_.end(), names.rbegin(), names.rend());
  }

  absl::Status GoToRoot() {
    current_ = Descriptor(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    path_ = "/";
    if (current_.get() < 0 || fstat(current_.get(), &status_) != 0) {
      return FileError(errno, "open", "/");
    }
    return CheckCurrent();
  }

  absl::Status CheckCurrent() {
    if (!IsTrustedOwner(status_.st_uid)) return BadOwner(path_.string(), status_.st_uid);
    if (OthersMayWrite(status_) && (status_.st_mode & S_ISVTX) == 0) {
      return OpenToOthers(path_.string(), status_);
    }
    return absl::OkStatus();
  }

  absl::Status Enter(const std::string& name) {
    const std::filesystem::path path = name == ".." ? path_.parent_path() : path_ / name;
    Descriptor entry(openat(current_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status;
    if (entry.get() < 0 || fstat(entry.get(), &status) != 0) {
      return FileError(errno, "open", path.string());
    }
    if (S_ISLNK(status.st_mode)) {
      // In a sticky directory, the link's owner could redirect it.
      if (OthersMayWrite(status_) && !IsTrustedOwner(status.st_uid)) {
        return BadOwner(path.string(), status.st_uid);
      }
      return Follow(entry, path.string());
    }
    if (!S_ISDIR(status.st_mode)) return FileError(ENOTDIR, "open", path.string());
    current_ = std::move(entry);
    status_ = status;
    path_ = path;
    return CheckCurrent();
  }

  absl::Status Follow(const Descriptor& link, const std::string& path) {
    std::string target(PATH_MAX, '\0');
    const ssize_t size = readlinkat(link.get(), "", target.data(), target.size());
    if (size < 0) return FileError(errno, "read the link", path);
    if (++links_ > kMaxLinks) return FileError(ELOOP, "open", path);
    target.resize(static_cast<size_t>(size));
    Push(target);
    return target.front() == '/' ? GoToRoot() : absl::OkStatus();
  }

  std::vector<std::string> left_;  // names still to enter, in reverse order
  Descriptor current_;
  struct stat status_ = {};     // of current_
  std::filesystem::path path_;  // of current_, without links
  int links_ = 0;
};

absl::Status CheckFile(const struct stat& status, const std::string& path, bool is_private) {
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a regular file; restore it from a backup"));
  }
  if (status.st_uid != geteuid() && (is_private || status.st_uid != 0)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " belongs to the user ", UserName(status.st_uid), "; run `chown ",
                     UserName(geteuid()), " ", ShellWord(path), "` as root"));
  }
  if (!is_private && (status.st_mode & 022) != 0) return OpenToOthers(path, status);
  if (is_private && (status.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("other users may open %s (mode %04o); check it for changes, then run "
                        "`chmod 600 %s`",
                        path, status.st_mode & 07777, ShellWord(path)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadChecked(const std::string& directory, const std::string& name,
                                        bool is_private) {
  const std::string path = absl::StrCat(directory, "/", name);
  ASSIGN_OR_RETURN(const Descriptor opened, Walk().Open(directory));
  // O_NONBLOCK: does not wait for the other end of a pipe.
  const Descriptor file(openat(opened.get(), name.c_str(),
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno != ELOOP) return FileError(errno, "open", path);
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " is a symbolic link; put the file in its place with `cp "
                     "--remove-destination \"$(readlink -f ",
                     ShellWord(path), ")\" ", ShellWord(path), "`"));
  }
  struct stat status;
  if (fstat(file.get(), &status) != 0) return FileError(errno, "read", path);
  RETURN_IF_ERROR(CheckFile(status, path, is_private));
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t size = read(file.get(), buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return FileError(errno, "read", path);
    if (size == 0) return content;
    content.append(buffer, static_cast<size_t>(size));
  }
}

}  // namespace

absl::Status CheckPrivateDirectory(const std::string& directory) {
  return Walk().Open(directory).status();
}

absl::StatusOr<std::string> ReadPrivateFile(const std::string& directory, const std::string& name) {
  return ReadChecked(directory, name, /*is_private=*/true);
}

absl::StatusOr<std::string> ReadTrustedFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return FileError(error.value(), "read", path);
  return ReadChecked(file.parent_path(), file.filename(), /*is_private=*/false);
}

}  // namespace lengthwise::platform
