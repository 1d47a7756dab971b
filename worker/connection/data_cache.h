// Caches the data files that this machine's workers download, by SHA-256.
#ifndef LENGTHWISE_WORKER_CONNECTION_DATA_CACHE_H_
#define LENGTHWISE_WORKER_CONNECTION_DATA_CACHE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::worker {

// Workers on one machine may share a directory: files appear atomically and never change.
// Thread-safe.
class DataCache {
 public:
  struct Options {
    // Created with the first file, with access for this user only.
    std::string directory;
    // Limit of all files, in bytes. The least recently used files are evicted first. The newest
    // file stays, even if it exceeds the limit.
    int64_t max_bytes = int64_t{10} << 30;
    // Directory of files with the same names that is only read, such as that of a server on this
    // machine. Empty: none.
    std::string other_directory;
  };

  // Passes the file's bytes to `take`, in order.
  using Fetch = std::function<absl::Status(const std::function<absl::Status(absl::string_view)>&)>;

  explicit DataCache(Options options) : options_(std::move(options)) {}

  // Returns the path of the file with this SHA-256. Fetches it if it is missing or damaged; every
  // call checks the bytes. DATA_LOSS if the fetched bytes have another SHA-256; also the errors of
  // `fetch` and of platform/files.h.
  absl::StatusOr<std::string> Get(absl::string_view sha256, const Fetch& fetch);

 private:
  // Evicts files other than `kept` until the rest fits the limit.
  void Shrink(const std::string& kept) const;

  const Options options_;
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_DATA_CACHE_H_
