// Remembers why the server cannot store what workers send.
#ifndef LENGTHWISE_SERVER_COORDINATION_DISK_FAULT_H_
#define LENGTHWISE_SERVER_COORDINATION_DISK_FAULT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"

namespace lengthwise::server {

// Thread-safe.
class DiskFault {
 public:
  // Takes the result of a write.
  void Note(const absl::Status& written) {
    platform::MutexLock lock(mutex_);
    text_ = std::string(written.message());
  }
  // The error of the last write; empty if it succeeded.
  std::string text() const {
    platform::MutexLock lock(mutex_);
    return text_;
  }

 private:
  mutable platform::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_DISK_FAULT_H_
