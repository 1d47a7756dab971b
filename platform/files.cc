#include "platform/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "platform/failpoint.h"
#include "platform/status_macros.h"

namespace lengthwise::platform {
namespace {

constexpr size_t kChunk = size_t{1} << 20;
// Writeback of a large file starts part by part during writing. The sync at commit then flushes two
// or three parts and not gigabytes, during which no progress could be reported.
constexpr int64_t kWritebackPart = int64_t{16} << 20;

// Starts the writeback of a part and waits for that of earlier parts. This makes nothing durable;
// only a sync does. Its errors must not be ignored, because a later sync does not report them
// again. Returns false with errno set.
bool StartWriteback(int descriptor, int64_t part) {
  const int64_t start = part * kWritebackPart;
  if (sync_file_range(descriptor, start, kWritebackPart, SYNC_FILE_RANGE_WRITE) != 0) {
    // Not every file system or sandbox supports the call. A call that fails without waiting has
    // consumed no error that the sync should report.
    return errno != EIO && errno != ENOSPC && errno != EDQUOT;
  }
  return part == 0 || sync_file_range(descriptor, 0, start, SYNC_FILE_RANGE_WAIT_BEFORE) == 0;
}

absl::Status CheckRegular(const struct stat& status, absl::string_view action,
                          const std::string& path) {
  if (S_ISREG(status.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("cannot ", action, " ", path, ": it is ",
                                                    S_ISDIR(status.st_mode)    ? "a directory"
                                                    : S_ISFIFO(status.st_mode) ? "a pipe"
                                                    : S_ISSOCK(status.st_mode) ? "a socket"
                                                                               : "a device",
                                                    ", expected a regular file"));
}

}  // namespace

absl::Status FileError(int error, absl::string_view action, absl::string_view path) {
  const std::string message = absl::StrCat("cannot ", action, " ", path, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(absl::StrCat(message, "; free some space"));
    case EFBIG:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; raise the limit of file sizes, `ulimit -f`"));
    case EROFS:
    case ELOOP:
      return absl::FailedPreconditionError(message);
    default:
      return absl::UnavailableError(message);
  }
}

std::string DirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

namespace {

std::string DirectoryAbove(const std::string& path) {
  // Normalizes "a/b/" to "a/b".
  std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  if (!clean.has_filename() && clean.has_relative_path()) clean = clean.parent_path();
  return DirectoryOf(clean.string());
}

}  // namespace

absl::Status CreateDirectories(const std::string& path) {
  std::error_code error;
  // Recurses up to an existing directory: "/" or "." at the latest.
  const std::string above = DirectoryAbove(path);
  if (above != path && !std::filesystem::exists(path, error)) {
    RETURN_IF_ERROR(CreateDirectories(above));
  }
  return CreateDirectory(path);
}

absl::Status CreateDirectory(const std::string& path) {
  const std::string above = DirectoryAbove(path);
  const bool made = mkdir(path.c_str(), 0777) == 0;
  const int error_number = errno;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return FileError(error_number == EEXIST ? ENOTDIR : error_number, "make directory", path);
  }
  // Also syncs for an existing directory, because its creator may have died before syncing. A
  // parent that cannot be read was not created here.
  absl::Status synced = SyncDirectory(above);
  if (absl::IsPermissionDenied(synced)) return absl::OkStatus();
  // Removes the directory, because a later sync may succeed although the name is lost. The next
  // call creates it again.
  if (!synced.ok() && made) rmdir(path.c_str());
  return synced;
}

absl::Status SyncDirectory(const std::string& path) {
  const Descriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return FileError(errno, "open directory", path);
  return fsync(directory.get()) == 0 ? absl::OkStatus() : FileError(errno, "sync directory", path);
}

absl::Status DropCachedPages(const std::string& path) {
  ASSIGN_OR_RETURN(const Descriptor file, OpenForReading(path));
  // Syncs first, because the kernel drops only clean pages.
  int error = fdatasync(file.get()) == 0 ? 0 : errno;
  const int advised = posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (error == 0) error = advised;
  return error == 0 ? absl::OkStatus() : FileError(error, "sync", path);
}

absl::StatusOr<FileStatus> GetFileStatus(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return FileError(errno, "read", path);
  return FileStatus{.size = status.st_size,
                    .modified = absl::TimeFromTimespec(status.st_mtim),
                    .inode = status.st_ino};
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return FileError(error.value(), "list directory", path);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status DeleteFile(const std::string& path) {
  LENGTHWISE_FAILPOINT_OR_RETURN("file.delete.before");
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return FileError(errno, "delete", path);
}

absl::Status DeleteTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? FileError(error.value(), "delete", path) : absl::OkStatus();
}

absl::StatusOr<Descriptor> OpenForReading(const std::string& path) {
  // Before opening it, which may already wait for a pipe or act on a device.
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return FileError(errno, "read", path);
  RETURN_IF_ERROR(CheckRegular(status, "read", path));
  // O_NONBLOCK: does not wait even if a pipe has just replaced the file.
  Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.is_open()) return FileError(errno, "read", path);
  return file;
}

absl::Status ReadFileInChunks(const std::string& path,
                              const std::function<bool(absl::string_view)>& take) {
  ASSIGN_OR_RETURN(const Descriptor file, OpenForReading(path));
  std::string buffer(kChunk, '\0');
  while (true) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, "read", path);
    if (count == 0 || !take(absl::string_view(buffer.data(), count))) return absl::OkStatus();
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t most_bytes) {
  ASSIGN_OR_RETURN(const FileStatus status, GetFileStatus(path));
  // The files in /proc have no size, and others may grow.
  int64_t size = status.size;
  std::string data;
  if (size <= most_bytes) {
    RETURN_IF_ERROR(ReadFileInChunks(path, [&](absl::string_view chunk) {
      data.append(chunk.data(), chunk.size());
      size = static_cast<int64_t>(data.size());
      return size <= most_bytes;
    }));
  }
  if (size <= most_bytes) return data;
  return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ": it has ", size,
                                                    " bytes, expected at most ", most_bytes));
}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(const std::string& path) {
  // Its new name would take the place of a device or a pipe, such as /dev/null.
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
    RETURN_IF_ERROR(CheckRegular(status, "write", path));
  }
  std::string temporary = absl::StrCat(path, ".XXXXXX", kTemporarySuffix);
  Descriptor descriptor(
      mkostemps(temporary.data(), static_cast<int>(kTemporarySuffix.size()), O_CLOEXEC));
  if (!descriptor.is_open()) return FileError(errno, "create a temporary file beside", path);
  LENGTHWISE_FAILPOINT("file.create.after");
  return std::unique_ptr<AtomicFile>(
      new AtomicFile(std::move(descriptor), path, std::move(temporary)));
}

AtomicFile::AtomicFile(Descriptor descriptor, std::string path, std::string temporary)
    : descriptor_(std::move(descriptor)),
      path_(std::move(path)),
      temporary_(std::move(temporary)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_.is_open()) unlink(temporary_.c_str());
}

absl::Status AtomicFile::Append(absl::string_view data) {
  LENGTHWISE_FAILPOINT_OR_RETURN("file.write.before");
  int64_t position = lseek(descriptor_.get(), 0, SEEK_CUR);
  while (!data.empty()) {
    const ssize_t count = write(descriptor_.get(), data.data(), std::min(data.size(), kChunk));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, "write", path_);
    data.remove_prefix(count);
    const int64_t part = position / kWritebackPart;
    position += count;
    if (position / kWritebackPart == part) continue;
    if (!StartWriteback(descriptor_.get(), part)) return FileError(errno, "write", path_);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  RETURN_IF_ERROR(Place());
  return SyncDirectory(DirectoryOf(path_));
}

absl::Status AtomicFile::Place() {
  LENGTHWISE_FAILPOINT_OR_RETURN("file.sync.before");
  if (fsync(descriptor_.get()) != 0) return FileError(errno, "sync", path_);
  LENGTHWISE_FAILPOINT_OR_RETURN("file.rename.before");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return FileError(errno, "rename", path_);
  LENGTHWISE_FAILPOINT("file.rename.after");
  descriptor_ = Descriptor();
  return absl::OkStatus();
}

absl::string_view WithoutTemporarySuffix(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kTemporarySuffix)) return "";
  constexpr size_t kUnique = 7;  // "." and what mkostemps chose
  if (name.size() <= kUnique || name[name.size() - kUnique] != '.' ||
      !std::all_of(name.end() - kUnique + 1, name.end(), absl::ascii_isalnum)) {
    return "";
  }
  return name.substr(0, name.size() - kUnique);
}

absl::Status DeleteTemporaryFilesOf(const std::string& path) {
  const std::string directory = DirectoryOf(path);
  const std::string file = std::filesystem::path(path).filename().string();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (WithoutTemporarySuffix(name) != file) continue;
    RETURN_IF_ERROR(DeleteFile(absl::StrCat(directory, "/", name)));
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view data) {
  ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  RETURN_IF_ERROR(file->Append(data));
  return file->Commit();
}

absl::Status CopyFile(const std::string& from, const std::string& to,
                      const std::function<void(absl::string_view)>& see) {
  ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> copy, AtomicFile::Create(to));
  absl::Status written;
  RETURN_IF_ERROR(ReadFileInChunks(from, [&](absl::string_view chunk) {
    if (see) see(chunk);
    written = copy->Append(chunk);
    return written.ok();
  }));
  RETURN_IF_ERROR(written);
  return copy->Place();
}

absl::Status LinkOrCopyFile(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno == ENOENT || errno == EEXIST || errno == ENOSPC) {
    return FileError(errno, absl::StrCat("link ", from, " as"), to);
  }
  return CopyFile(from, to);
}

absl::Status SyncFileSystem(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return FileError(errno, "open", path);
  if (syncfs(file.get()) == 0) return absl::OkStatus();
  return FileError(errno, "sync the file system of", path);
}

absl::Status MoveDirectory(const std::string& from, const std::string& to) {
  LENGTHWISE_FAILPOINT_OR_RETURN("directory.rename.before");
  if (rename(from.c_str(), to.c_str()) != 0) {
    return FileError(errno, absl::StrCat("rename ", from, " to"), to);
  }
  LENGTHWISE_FAILPOINT("directory.rename.after");
  absl::Status synced = SyncDirectory(DirectoryOf(to));
  // Undoes the rename, so that `to` does not exist after any error.
  if (!synced.ok()) rename(to.c_str(), from.c_str());
  return synced;
}

absl::StatusOr<DiskSpace> GetDiskSpace(const std::string& path) {
  struct statvfs status = {};
  if (statvfs(path.c_str(), &status) != 0) return FileError(errno, "look at", path);
  const auto block = static_cast<int64_t>(status.f_frsize);
  return DiskSpace{.free_bytes = static_cast<int64_t>(status.f_bavail) * block,
                   .size_bytes = static_cast<int64_t>(status.f_blocks) * block};
}

absl::Status AllocateFile(const std::string& path, int64_t bytes) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file.is_open()) return FileError(errno, "make", path);
  const int error = posix_fallocate(file.get(), 0, bytes);
  return error == 0 ? absl::OkStatus() : FileError(error, "take space for", path);
}

absl::StatusOr<std::unique_ptr<TemporaryFile>> TemporaryFile::Create(const std::string& directory) {
  // Not O_TMPFILE, which some file systems lack.
  std::string path = absl::StrCat(directory, "/temporary.XXXXXX");
  Descriptor descriptor(mkostemp(path.data(), O_CLOEXEC));
  if (!descriptor.is_open()) return FileError(errno, "make a temporary file in", directory);
  std::unique_ptr<TemporaryFile> file(new TemporaryFile(std::move(descriptor), directory));
  if (unlink(path.c_str()) != 0) return FileError(errno, "delete", path);
  return file;
}

TemporaryFile::~TemporaryFile() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

absl::Status TemporaryFile::Write(int64_t offset, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t count = pwrite(descriptor_.get(), data.data(), data.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, "write to a temporary file in", directory_);
    offset += count;
    data.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TemporaryFile::Read(int64_t offset, int64_t size) const {
  std::string data(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t count = pread(descriptor_.get(), data.data() + done, data.size() - done,
                                offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(errno, "read a temporary file in", directory_);
    if (count == 0) {
      return absl::DataLossError(absl::StrCat("a temporary file in ", directory_,
                                              " is shorter than the data written to it"));
    }
    done += static_cast<size_t>(count);
  }
  return data;
}

absl::StatusOr<absl::string_view> TemporaryFile::Map(int64_t size) {
  if (mapped_ != nullptr) munmap(std::exchange(mapped_, nullptr), mapped_bytes_);
  void* const mapped =
      mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, descriptor_.get(), 0);
  if (mapped == MAP_FAILED) return FileError(errno, "map a temporary file in", directory_);
  mapped_ = mapped;
  mapped_bytes_ = static_cast<size_t>(size);
  return absl::string_view(static_cast<const char*>(mapped_), mapped_bytes_);
}

namespace {

// Where process ids mean what they mean here: this machine, since its start, and this container.
std::string ProcessSpace() {
  const absl::StatusOr<std::string> boot = ReadFile("/proc/sys/kernel/random/boot_id");
  std::error_code error;
  const auto ids = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return absl::StrCat(boot.ok() ? absl::StripAsciiWhitespace(*boot) : "", " ", ids.string());
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Lock(const std::string& path, int kind) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.is_open()) return FileError(errno, "open", path);
  if (flock(file.get(), kind | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FileError(errno, "lock", path);
    return absl::AbortedError(absl::StrCat(path, " is locked by another process"));
  }
  return std::unique_ptr<FileLock>(new FileLock(std::move(file), path));
}

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Acquire(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, Lock(path, LOCK_EX));
  // The text of a holder that was killed must not be taken for that of this one.
  struct stat status = {};
  if (fstat(lock->descriptor_.get(), &status) == 0 && status.st_size > 0 &&
      ftruncate(lock->descriptor_.get(), 0) != 0) {
    return FileError(errno, "empty", path);
  }
  return lock;
}

absl::StatusOr<std::unique_ptr<FileLock>> FileLock::Share(const std::string& path) {
  return Lock(path, LOCK_SH);
}

bool FileLock::TakeAlone() { return flock(descriptor_.get(), LOCK_EX | LOCK_NB) == 0; }

absl::Status FileLock::Describe(absl::string_view text) {
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, sizeof(host) - 1);
  const std::string contents = absl::StrCat(getpid(), " ", ProcessSpace(), " ", host, "\n", text);
  if (fchmod(descriptor_.get(), S_IRUSR | S_IWUSR) != 0) {
    return FileError(errno, "change the permissions of", path_);
  }
  if (ftruncate(descriptor_.get(), 0) != 0) return FileError(errno, "empty", path_);
  const ssize_t written = pwrite(descriptor_.get(), contents.data(), contents.size(), 0);
  if (written == static_cast<ssize_t>(contents.size())) return absl::OkStatus();
  return FileError(written < 0 ? errno : ENOSPC, "write", path_);
}

std::optional<FileLock::Holder> FileLock::ReadHolder(const std::string& path) {
  const absl::StatusOr<std::string> contents = ReadFile(path);
  if (!contents.ok()) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(*contents, absl::MaxSplits('\n', 1));
  // Process, the two words of ProcessSpace, host.
  const std::vector<std::string> words = absl::StrSplit(parts.first, ' ');
  Holder holder;
  if (words.size() < 3 || !absl::SimpleAtoi(words[0], &holder.process) || holder.process < 1) {
    return std::nullopt;
  }
  if (words.size() > 3) holder.host = words[3];
  holder.text = std::string(parts.second);
  if (absl::StrCat(words[1], " ", words[2]) != ProcessSpace()) {
    holder.process = 0;
    return holder;
  }
  // Signal 0 only asks. EPERM: the process is another user's.
  if (kill(holder.process, 0) != 0 && errno != EPERM) return std::nullopt;
  // A zombie, which holds no lock, has no command line.
  const auto command = ReadFile(absl::StrCat("/proc/", holder.process, "/cmdline"));
  if (command.ok() && command->empty()) return std::nullopt;
  return holder;
}

}  // namespace lengthwise::platform
