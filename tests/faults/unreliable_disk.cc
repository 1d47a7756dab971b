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
#include <utility>
#include <vector>

namespace lengthwise::faults {
namespace {

constexpr size_t kSector = 512;

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
  // Keeps the inode from being given to another file.
  int descriptor = -1;
};

struct Disk {
  std::mutex mutex;
  std::string root;  // empty: no disk
  bool power = true;
  int64_t operations_left = std::numeric_limits<int64_t>::max();
  int write_error = 0;
  std::map<ino_t, File> files;
  // Durable names by directory; a directory's inode is 0.
  std::map<std::string, std::map<std::string, ino_t>> names;
};

Disk& TheDisk() {
  static Disk* const disk = new Disk();
  return *disk;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The path that a descriptor was opened with, where it is on the disk; otherwise empty.
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

// Whether an operation may take place; otherwise sets errno.
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

// `offset` below 0: where the descriptor stands.
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
    FileOf(disk, descriptor).pending.push_back({size, "", /*truncates=*/true});
  }
  return result;
}

// The names of a directory become durable.
void SyncNames(Disk& disk, const std::string& directory) {
  std::map<std::string, ino_t>& names = disk.names[directory];
  names.clear();
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    struct stat status;
    if (lstat(entry.path().c_str(), &status) != 0) continue;
    names[entry.path().filename().string()] = S_ISDIR(status.st_mode) ? 0 : status.st_ino;
  }
}

int Sync(int descriptor) {
  Disk& disk = TheDisk();
  const std::lock_guard<std::mutex> lock(disk.mutex);
  const std::string path = PathOnDisk(disk, descriptor);
  if (path.empty()) return static_cast<int>(syscall(SYS_fsync, descriptor));
  // The real disk is not waited for: it keeps its power.
  if (!MayOperate(disk, /*writes=*/false)) return -1;
  struct stat status;
  if (fstat(descriptor, &status) != 0) return -1;
  if (S_ISDIR(status.st_mode)) {
    SyncNames(disk, path);
    return 0;
  }
  File& file = FileOf(disk, descriptor);
  for (const Change& change : file.pending) Apply(change, file.synced);
  file.pending.clear();
  return 0;
}

// What the loss of power left of a file.
std::string Remains(const File& file, std::mt19937_64& random) {
  std::string bytes = file.synced;
  for (const Change& change : file.pending) {
    switch (random() % 3) {
      case 0:
        break;
      case 1:
        Apply(change, bytes);
        break;
      default:
        if (change.truncates) break;
        // Torn between two sectors.
        const size_t sectors = change.data.size() / kSector + 1;
        Change part = change;
        part.data.resize(std::min(part.data.size(), random() % sectors * kSector));
        if (!part.data.empty()) Apply(part, bytes);
    }
  }
  return bytes;
}

void RestoreDirectory(Disk& disk, const std::string& directory, std::mt19937_64& random) {
  std::filesystem::create_directory(directory);
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
}

// What lies on the directory is durable.
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
    for (ssize_t size; (size = read(file.descriptor, buffer.data(), buffer.size())) > 0;) {
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

// In the place of the C library's.
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

}  // extern "C"
