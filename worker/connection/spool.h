// Where a worker puts what its memory has no room for while the server is away: on the disk.
#ifndef LENGTHWISE_WORKER_CONNECTION_SPOOL_H_
#define LENGTHWISE_WORKER_CONNECTION_SPOOL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "platform/temporary_file.h"

namespace lengthwise::worker {

// Records in files without names, so that a worker that dies leaves nothing behind: what it had not
// handed in comes again from its checkpoints. The space of a file is free again when all its
// records are released. Thread-safe.
class Spool {
 public:
  struct Options {
    // Made when the first record is written, for this user alone.
    std::string directory;
    // Most bytes of all files; 0: nothing is ever written.
    int64_t max_bytes = int64_t{4} << 30;
    // A file that has so many takes no more records.
    int64_t file_bytes = 16 << 20;
  };

  struct Record {
    int64_t file = 0;
    int64_t offset = 0;
    int64_t size = 0;
    uint64_t check = 0;
  };

  explicit Spool(Options options) : options_(std::move(options)) {}

  // Nothing when there is no room: the spool is full, or the disk is, or cannot be written, which
  // is logged.
  std::optional<Record> Write(absl::string_view bytes);
  // DATA_LOSS: these are not the bytes that were written.
  absl::StatusOr<std::string> Read(const Record& record);
  void Release(const Record& record);

  // Of all files.
  int64_t bytes() const;

 private:
  struct File {
    std::unique_ptr<platform::TemporaryFile> file;
    int64_t size = 0;
    int64_t records = 0;  // not released
  };

  // Finds room for a record. Errors of the disk.
  absl::StatusOr<Record> Reserve(int64_t size, std::shared_ptr<File>& file);
  void ReleaseLocked(const Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Log(const absl::Status& status);

  const Options options_;
  mutable platform::Mutex mutex_;
  std::map<int64_t, std::shared_ptr<File>> files_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last write failed for this reason, which was logged.
  std::string failure_ ABSL_GUARDED_BY(mutex_);
};

// "<cache>/lengthwise/spool", where <cache> is $XDG_CACHE_HOME or ~/.cache.
std::string DefaultSpoolDirectory();

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_SPOOL_H_
