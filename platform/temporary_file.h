// An unnamed temporary file. No other process can open it by name, and it disappears when it is
// closed or the process dies.
#ifndef LENGTHWISE_PLATFORM_TEMPORARY_FILE_H_
#define LENGTHWISE_PLATFORM_TEMPORARY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {

// Errors are those of files.h. Thread-safe for ranges that do not overlap.
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
  // The first `size` bytes, without a copy in memory: the kernel reads them when they are used.
  // Valid until the next call of Map and while this object lives. DATA_LOSS if the file is shorter.
  absl::StatusOr<absl::string_view> Map(int64_t size);

 private:
  TemporaryFile(int descriptor, std::string directory)
      : descriptor_(descriptor), directory_(std::move(directory)) {}

  const int descriptor_;
  const std::string directory_;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_TEMPORARY_FILE_H_
