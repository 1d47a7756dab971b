// NumPy's .npz: an uncompressed ZIP archive of .npy files, one an array
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html). numpy.load opens it.
#ifndef LENGTHWISE_CLIENT_EXPORT_NPZ_FILE_H_
#define LENGTHWISE_CLIENT_EXPORT_NPZ_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/export/output.h"

namespace lengthwise::client {

// Not thread-safe. Errors are the file's, and FAILED_PRECONDITION for more than 4 GiB or 65,535
// arrays, which ZIP archives of this kind do not hold.
class NpzFile {
 public:
  // `file` outlives it.
  explicit NpzFile(OutputFile& file) : file_(file) {}

  // Row-major; as many values as the shape says (a programming error otherwise).
  absl::Status Add(const std::string& name, const std::vector<int64_t>& shape,
                   const std::vector<float>& values);
  absl::Status Add(const std::string& name, const std::vector<int64_t>& shape,
                   const std::vector<double>& values);
  absl::Status Add(const std::string& name, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& values);
  // float32 values as they are, little endian.
  absl::Status AddFloats(const std::string& name, const std::vector<int64_t>& shape,
                         absl::string_view bytes);

  bool empty() const { return entries_.empty(); }
  // Writes the archive's directory; closing the file is its owner's.
  absl::Status Finish();

 private:
  struct Entry {
    std::string name;
    uint32_t crc = 0;
    uint32_t size = 0;
    uint32_t offset = 0;
  };

  absl::Status AddBytes(const std::string& name, absl::string_view type,
                        const std::vector<int64_t>& shape, size_t item_size,
                        absl::string_view bytes);
  absl::Status Append(absl::string_view bytes);

  OutputFile& file_;
  std::vector<Entry> entries_;
  uint64_t offset_ = 0;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_EXPORT_NPZ_FILE_H_
