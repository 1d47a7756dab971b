// Files of examples that this machine's workers have fetched, by their SHA-256.
#ifndef LENGTHWISE_WORKER_CONNECTION_DATA_CACHE_H_
#define LENGTHWISE_WORKER_CONNECTION_DATA_CACHE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lengthwise::worker {

// Workers of one machine may share a directory: files appear whole and are never written again.
// Thread-safe.
class DataCache {
 public:
  struct Options {
    // Made when the first file comes, for this user alone.
    std::string directory;
    // Most bytes of all files. The least recently used ones go first; the newest one stays, however
    // large it is.
    int64_t max_bytes = int64_t{10} << 30;
  };

  // Hands the file's bytes to `take`, in their order.
  using Fetch = std::function<absl::Status(const std::function<absl::Status(absl::string_view)>&)>;

  explicit DataCache(Options options) : options_(std::move(options)) {}

  // Returns the path of the file with this SHA-256, fetched where it is not there or damaged. The
  // bytes are checked at each call. DATA_LOSS: what was fetched has another SHA-256; errors of
  // `fetch` and of platform/files.h.
  absl::StatusOr<std::string> Get(absl::string_view sha256, const Fetch& fetch);

 private:
  // Deletes files until all fit, `kept` apart.
  void Shrink(const std::string& kept) const;

  const Options options_;
};

// "<cache>/lengthwise/data", where <cache> is $XDG_CACHE_HOME or ~/.cache.
std::string DefaultDataCacheDirectory();

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_DATA_CACHE_H_
