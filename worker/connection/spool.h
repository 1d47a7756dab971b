// Disk overflow for the outbox during a server outage.
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
#include "platform/files.h"
#include "platform/mutex.h"

namespace lengthwise::worker {

// Stores records in unnamed temporary files. They vanish when the worker exits, which is safe
// because the next attempt repeats unsent work from the last stored checkpoint. A file's space is
// reclaimed when all its records are released. Thread-safe.
class Spool {
 public:
  struct Options {
    // Created with the first record, with access for this user only.
    std::string directory;
    // Limit of all files, in bytes. 0 disables the spool.
    int64_t max_bytes = int64_t{4} << 30;
    // A file of this size or more, in bytes, receives no more records.
    int64_t file_bytes = 16 << 20;
  };

  struct Record {
    int64_t file = 0;
    int64_t offset = 0;
    int64_t size = 0;
    uint64_t check = 0;
  };

  explicit Spool(Options options) : options_(std::move(options)) {}

  // Returns nullopt if the spool is full or the disk cannot be written; logs the reason once.
  std::optional<Record> Write(absl::string_view bytes);
  // DATA_LOSS: the record was released, or the file's bytes changed.
  absl::StatusOr<std::string> Read(const Record& record);
  void Release(const Record& record);

  // Size of all files, including released records of files still in use.
  int64_t bytes() const;

 private:
  struct File {
    std::unique_ptr<platform::TemporaryFile> file;
    int64_t size = 0;
    int64_t records = 0;  // unreleased
  };

  // Reserves space for a record. RESOURCE_EXHAUSTED: max_bytes is reached; other errors are the
  // disk's.
  absl::StatusOr<Record> Reserve(int64_t size, std::shared_ptr<File>& file);
  void Log(const absl::Status& status);

  const Options options_;
  mutable platform::Mutex mutex_;
  std::map<int64_t, std::shared_ptr<File>> files_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Reason why the last write failed, already logged; empty after a success.
  std::string failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_SPOOL_H_
