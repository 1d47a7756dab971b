#include "tests/faults/unreliable_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace lengthwise::faults {
namespace {

constexpr size_t kSector = 512;
constexpr int64_t kPage = 4096;

// A write, or a truncation (`data` empty, `truncates`).
struct Change {
  int64_t offset = 0;  // a truncation's new size
  std::string data;
  bool truncates = false;
};

void Apply(const Change& change, std::string& bytes) {
  if (change.truncates) {
    bytes.resize(change.offset);
    return;
  }
  bytes.resize(std::max(bytes.size(), change.offset + change.data.size()));
  bytes.replace(change.offset, change.data.size(), change.data);
}

struct File {
  std::string synced;
  std::vector<Change> pending;
  // Pages that a failed sync lost. Later writes to them stay in memory.
  std::set<int64_t> forgotten;
  // Keeps the inode from being reused.
  int descriptor = -1;
};

// The durable content of a file: `synced` with the changes applied.
std::string AfterSync(std::string synced, const std::set<int64_t>& forgotten,
                      const std::vector<Change>& changes) {
  const std::string before = forgotten.empty() ? "" : synced;
  std::string bytes = std::move(synced);
  for (const Change& change : changes) Apply(change, bytes);
  for (const int64_t page : forgotten) {
    const size_t begin = page * kPage;
    if (begin >= bytes.size()) break;
    std::string old = begin < before.size() ? before.substr(begin, kPage) : "";
    old.resize(std::min<size_t>(kPage, bytes.size() - begin));
    bytes.replace(begin, old.size(), old);
  }
  return bytes;
}

// After a failed sync, the pending data is lost; sizes are kept.
void Forget(File& file) {
  for (const Change& change : file.pending) {
    if (change.truncates) {
      file.synced.resize(std::min<size_t>(file.synced.size(), change.offset));
      continue;
    }
    const int64_t last = (change.offset + static_cast<int64_t>(change.data.size()) - 1) / kPage;
    for (int64_t page = change.offset / kPage; page <= last; ++page) file.forgotten.insert(page);
  }
  file.pending.clear();
}

struct Disk {
  std::mutex mutex;
  std::string root;  // empty: no disk
  bool power = true;
  int64_t operations_left = std::numeric_limits<int64_t>::max();
  int write_error = 0;
  int read_error = 0;
  int sync_error = 0;
  // Number of syncs until the first failure, and number of failing syncs.
  int64_t syncs_before = 0;
  int64_t syncs_to_fail = 0;
  int64_t failed_syncs = 0;
  std::map<ino_t, File> files;
  // Durable names by directory. A directory's inode is 0.
  std::map<std::string, std::map<std::string, ino_t>> names;
  // Names that a failed sync lost, with their inodes. A path stays here until it is created again.
  std::map<std::string, ino_t> forgotten_names;
};

Disk& TheDisk() {
  static Disk* const disk = new Disk();
  return *disk;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The path that a descriptor was opened with if it is on the disk; otherwise empty.
std::string PathOnDisk(const Disk& disk, int descriptor) {
  if (disk.root.empty()) return "";
  std::array<char, 32> link;
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  std::array<char, 4096> target;
  const ssize_t size = readlink(link.data(), target.data(), target.size());
  if (size <= 0) return "";
  std::string path(target.data(), size);
  const bool inside = path.compare(0, disk.root.size(), disk.root) == 0 &&
                      (path.size() == disk.root.size() || path[disk.root.size()] == '/');
  return inside && !EndsWith(path, "-shm") ? path : "";
}

File& FileOf(Disk& disk, int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) std::abort();
  File& file = disk.files[status.st_ino];
  if (file.descriptor < 0) file.descriptor = dup(descriptor);
  return file;
}

// Returns true if an operation may take place; otherwise sets errno.
bool MayOperate(Disk& disk, bool writes) {
  if (disk.power && --disk.operations_left <= 0) disk.power = false;
  if (!disk.power) {
    errno = EIO;
    return false;
  }
  if (writes && disk.write_error != 0) {
    errno = disk.write_error;
    return false;
  }
  return true;
}

// `offset` below 0: write at the descriptor's position.
ssize_t Write(int descriptor, const void* data, size_t size, int64_t offset) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  const bool on_disk = !PathOnDisk(disk, descriptor).empty();
  if (on_disk && !MayOperate(disk, /*writes=*/true)) return -1;
  const int64_t place = offset >= 0 || !on_disk ? offset : lseek(descriptor, 0, SEEK_CUR);
  const ssize_t written = offset >= 0 ? syscall(SYS_pwrite64, descriptor, data, size, offset)
                                      : syscall(SYS_write, descriptor, data, size);
  if (on_disk && written > 0) {
    FileOf(disk, descriptor)
        .pending.push_back({place, std::string(static_cast<const char*>(data), written)});
  }
  return written;
}

int Truncate(int descriptor, int64_t size) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  const bool on_disk = !PathOnDisk(disk, descriptor).empty();
  if (on_disk && !MayOperate(disk, /*writes=*/true)) return -1;
  const int result = static_cast<int>(syscall(SYS_ftruncate, descriptor, size));
  if (on_disk && result == 0) {
    File& file = FileOf(disk, descriptor);
    file.pending.push_back({size, "", /*truncates=*/true});
    // A freed page becomes a new one when it is written again.
    file.forgotten.erase(file.forgotten.lower_bound((size + kPage - 1) / kPage),
                         file.forgotten.end());
  }
  return result;
}

// Makes the names of a directory durable.
void SyncNames(Disk& disk, const std::string& directory) {
  const std::map<std::string, ino_t> before = std::exchange(disk.names[directory], {});
  std::map<std::string, ino_t>& names = disk.names[directory];
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    struct stat status;
    if (lstat(entry.path().c_str(), &status) != 0) continue;
    const std::string name = entry.path().filename().string();
    const auto forgotten = disk.forgotten_names.find(entry.path().string());
    if (forgotten != disk.forgotten_names.end() && forgotten->second == status.st_ino) {
      if (const auto old = before.find(name); old != before.end()) names.insert(*old);
      continue;
    }
    names[name] = S_ISDIR(status.st_mode) ? 0 : status.st_ino;
  }
}

// Marks the names of a directory that are not durable as lost.
void ForgetNames(Disk& disk, const std::string& directory) {
  const std::map<std::string, ino_t>& durable = disk.names[directory];
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    struct stat status;
    if (lstat(entry.path().c_str(), &status) != 0) continue;
    const auto old = durable.find(entry.path().filename().string());
    const bool is_directory = S_ISDIR(status.st_mode);
    if (old != durable.end() && old->second == (is_directory ? 0 : status.st_ino)) continue;
    disk.forgotten_names[entry.path().string()] = status.st_ino;
  }
}

// Records that a name was created (perhaps again) or removed.
void ChangedName(const char* path) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  disk.forgotten_names.erase(std::filesystem::absolute(path).lexically_normal().string());
}

// Returns true if this sync fails; otherwise counts it.
bool SyncFails(Disk& disk) {
  if (disk.syncs_to_fail == 0) return false;
  if (disk.syncs_before > 0) {
    --disk.syncs_before;
    return false;
  }
  --disk.syncs_to_fail;
  ++disk.failed_syncs;
  return true;
}

int Sync(int descriptor) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  const std::string path = PathOnDisk(disk, descriptor);
  if (path.empty()) return static_cast<int>(syscall(SYS_fsync, descriptor));
  // Does not sync the real disk: it keeps its power.
  if (!MayOperate(disk, /*writes=*/false)) return -1;
  struct stat status;
  if (fstat(descriptor, &status) != 0) return -1;
  const bool is_directory = S_ISDIR(status.st_mode);
  if (SyncFails(disk)) {
    if (is_directory) {
      ForgetNames(disk, path);
    } else {
      Forget(FileOf(disk, descriptor));
    }
    errno = disk.sync_error;
    return -1;
  }
  if (is_directory) {
    SyncNames(disk, path);
    return 0;
  }
  File& file = FileOf(disk, descriptor);
  file.synced = AfterSync(std::move(file.synced), file.forgotten, file.pending);
  file.pending.clear();
  return 0;
}

// Implements posix_fadvise(POSIX_FADV_DONTNEED): memory keeps only what waits for a sync.
void DropPages(Disk& disk, int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || S_ISDIR(status.st_mode)) return;
  File& file = FileOf(disk, descriptor);
  if (!file.pending.empty()) return;
  // The descriptor may be read-only, so the file is opened again.
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", descriptor);
  const int writable = open(path.data(), O_WRONLY | O_CLOEXEC);
  if (writable < 0) std::abort();
  std::string bytes = file.synced;
  bytes.resize(status.st_size);
  for (const int64_t page : file.forgotten) {
    const int64_t begin = page * kPage;
    const int64_t size = std::min<int64_t>(kPage, status.st_size - begin);
    if (size <= 0) break;
    if (syscall(SYS_pwrite64, writable, bytes.data() + begin, size, begin) != size) std::abort();
  }
  close(writable);
  file.forgotten.clear();
}

int Advise(int descriptor, int64_t offset, int64_t size, int advice) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  if (advice == POSIX_FADV_DONTNEED && !PathOnDisk(disk, descriptor).empty()) {
    DropPages(disk, descriptor);
    return 0;
  }
  const auto result = syscall(SYS_fadvise64, descriptor, offset, size, advice);
  return result == 0 ? 0 : errno;
}

// Returns true and sets errno if a read fails.
bool ReadFails(int descriptor) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  if (disk.read_error == 0 || PathOnDisk(disk, descriptor).empty()) return false;
  errno = disk.read_error;
  return true;
}

// The content of a file after a power loss.
std::string Remains(const File& file, std::mt19937_64& random) {
  std::vector<Change> survivors;
  for (const Change& change : file.pending) {
    switch (random() % 3) {
      case 0:
        break;
      case 1:
        survivors.push_back(change);
        break;
      default:
        if (change.truncates) break;
        // Torn between two sectors.
        const size_t sectors = change.data.size() / kSector + 1;
        Change part = change;
        part.data.resize(std::min(part.data.size(), random() % sectors * kSector));
        if (!part.data.empty()) survivors.push_back(std::move(part));
    }
  }
  return AfterSync(file.synced, file.forgotten, survivors);
}

void RestoreDirectory(Disk& disk, const std::string& directory, std::mt19937_64& random) {
  // The system call, because mkdir() is replaced here and the mutex is held.
  syscall(SYS_mkdirat, AT_FDCWD, directory.c_str(), 0755);
  for (const auto& [name, inode] : disk.names[directory]) {
    const std::string path = directory + "/" + name;
    if (inode == 0) {
      RestoreDirectory(disk, path, random);
      continue;
    }
    const std::string bytes = Remains(disk.files[inode], random);
    const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0 || syscall(SYS_write, descriptor, bytes.data(), bytes.size()) !=
                              static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
    close(descriptor);
  }
}

void ForgetFiles(Disk& disk) {
  for (const auto& [inode, file] : disk.files) {
    if (file.descriptor >= 0) close(file.descriptor);
  }
  disk.files.clear();
  disk.names.clear();
  disk.forgotten_names.clear();
}

// Everything in the directory becomes durable.
void TakeAsDurable(Disk& disk, const std::string& directory) {
  SyncNames(disk, directory);
  for (const auto& [name, inode] : disk.names[directory]) {
    const std::string path = directory + "/" + name;
    if (inode == 0) {
      TakeAsDurable(disk, path);
      continue;
    }
    File& file = disk.files[inode];
    file.descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::array<char, 65536> buffer;
    for (ssize_t size;
         (size = syscall(SYS_read, file.descriptor, buffer.data(), buffer.size())) > 0;) {
      file.synced.append(buffer.data(), size);
    }
  }
}

}  // namespace

UnreliableDisk::UnreliableDisk(std::string directory)
    : directory_((std::filesystem::create_directories(directory),
                  std::filesystem::canonical(directory).string())) {
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    std::filesystem::remove_all(entry.path());
  }
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  if (!disk.root.empty()) std::abort();  // one at a time
  disk.root = directory_;
}

UnreliableDisk::~UnreliableDisk() {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  ForgetFiles(disk);
  disk.root.clear();
  disk.power = true;
  disk.operations_left = std::numeric_limits<int64_t>::max();
  disk.write_error = 0;
  disk.read_error = 0;
  disk.syncs_to_fail = 0;
  disk.failed_syncs = 0;
}

void UnreliableDisk::CutPowerAt(int64_t operation) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  disk.operations_left = operation;
}

bool UnreliableDisk::has_power() const {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  return disk.power;
}

void UnreliableDisk::FailWrites(int error) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  disk.write_error = error;
}

void UnreliableDisk::FailReads(int error) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  disk.read_error = error;
}

void UnreliableDisk::FailSyncs(int error, int64_t first, int64_t count) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  disk.sync_error = error;
  disk.syncs_before = first - 1;
  disk.syncs_to_fail = error == 0 ? 0 : count;
}

int64_t UnreliableDisk::failed_syncs() const {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  return disk.failed_syncs;
}

void UnreliableDisk::Restore(std::mt19937_64& random) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    std::filesystem::remove_all(entry.path());
  }
  RestoreDirectory(disk, directory_, random);
  ForgetFiles(disk);
  TakeAsDurable(disk, directory_);
  disk.power = true;
  disk.operations_left = std::numeric_limits<int64_t>::max();
}

}  // namespace lengthwise::faults

// These replace the C library's functions.
extern "C" {

ssize_t write(int descriptor, const void* data, size_t size) {
  return lengthwise::faults::Write(descriptor, data, size, -1);
}
ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  return lengthwise::faults::Write(descriptor, data, size, offset);
}
ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t offset) {
  return lengthwise::faults::Write(descriptor, data, size, offset);
}
int ftruncate(int descriptor, off_t size) noexcept {
  return lengthwise::faults::Truncate(descriptor, size);
}
int ftruncate64(int descriptor, off64_t size) noexcept {
  return lengthwise::faults::Truncate(descriptor, size);
}
int fsync(int descriptor) { return lengthwise::faults::Sync(descriptor); }
int fdatasync(int descriptor) { return lengthwise::faults::Sync(descriptor); }

ssize_t read(int descriptor, void* data, size_t size) {
  if (lengthwise::faults::ReadFails(descriptor)) return -1;
  return syscall(SYS_read, descriptor, data, size);
}
ssize_t pread(int descriptor, void* data, size_t size, off_t offset) {
  if (lengthwise::faults::ReadFails(descriptor)) return -1;
  return syscall(SYS_pread64, descriptor, data, size, offset);
}
ssize_t pread64(int descriptor, void* data, size_t size, off64_t offset) {
  return pread(descriptor, data, size, offset);
}

int posix_fadvise(int descriptor, off_t offset, off_t size, int advice) noexcept {
  return lengthwise::faults::Advise(descriptor, offset, size, advice);
}
int posix_fadvise64(int descriptor, off64_t offset, off64_t size, int advice) noexcept {
  return lengthwise::faults::Advise(descriptor, offset, size, advice);
}

int rename(const char* from, const char* to) noexcept {
  const int result = static_cast<int>(syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
  if (result == 0) lengthwise::faults::ChangedName(to);
  return result;
}
int link(const char* from, const char* to) noexcept {
  const int result = static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
  if (result == 0) lengthwise::faults::ChangedName(to);
  return result;
}
int unlink(const char* path) noexcept {
  const int result = static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
  if (result == 0) lengthwise::faults::ChangedName(path);
  return result;
}
int mkdir(const char* path, mode_t mode) noexcept {
  const int result = static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
  if (result == 0) lengthwise::faults::ChangedName(path);
  return result;
}

}  // extern "C"
