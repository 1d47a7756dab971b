#include "platform/temporary_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/files.h"

namespace lengthwise::platform {

absl::StatusOr<std::unique_ptr<TemporaryFile>> TemporaryFile::Create(const std::string& directory) {
  // Not O_TMPFILE, which some file systems lack.
  std::string path = absl::StrCat(directory, "/temporary.XXXXXX");
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return FileError(errno, "make a temporary file in", directory);
  std::unique_ptr<TemporaryFile> file(new TemporaryFile(descriptor, directory));
  if (unlink(path.c_str()) != 0) return FileError(errno, "delete", path);
  return file;
}

TemporaryFile::~TemporaryFile() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  close(descriptor_);
}

absl::Status TemporaryFile::Write(int64_t offset, absl::string_view data) {
  while (!data.empty()) {
    const ssize_t count = pwrite(descriptor_, data.data(), data.size(), offset);
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
    const ssize_t count = pread(descriptor_, data.data() + done, data.size() - done,
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
  if (size == 0) return "";
  struct stat status;
  if (fstat(descriptor_, &status) != 0) {
    return FileError(errno, "read a temporary file in", directory_);
  }
  // Bytes beyond the file's end cannot be read.
  if (status.st_size < size) {
    return absl::DataLossError(absl::StrCat("a temporary file in ", directory_,
                                            " is shorter than the data written to it"));
  }
  void* const mapped =
      mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) return FileError(errno, "map a temporary file in", directory_);
  mapped_ = mapped;
  mapped_bytes_ = static_cast<size_t>(size);
  return absl::string_view(static_cast<const char*>(mapped_), mapped_bytes_);
}

}  // namespace lengthwise::platform
