// RegisteredWorkers: limits the number of workers that one principal may register, because the
// server keeps each worker's description for an hour after its last call.
#ifndef LENGTHWISE_SERVER_API_REGISTERED_WORKERS_H_
#define LENGTHWISE_SERVER_API_REGISTERED_WORKERS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::server {

// Thread-safe.
class RegisteredWorkers {
 public:
  static constexpr absl::Duration kKept = absl::Hours(1);

  explicit RegisteredWorkers(int64_t most) : most_(most) {}

  // RESOURCE_EXHAUSTED if `principal` registered too many other workers within the last hour.
  absl::Status Register(absl::string_view principal, absl::string_view worker, absl::Time now) {
    platform::MutexLock lock(mutex_);
    absl::flat_hash_map<std::string, absl::Time>& workers = principals_[principal];
    if (static_cast<int64_t>(workers.size()) >= most_ && !workers.contains(worker)) {
      absl::erase_if(workers, [&](const auto& entry) { return now - entry.second > kKept; });
      if (static_cast<int64_t>(workers.size()) >= most_) {
        return absl::ResourceExhaustedError(
            absl::StrCat(principal, " has registered ", workers.size(),
                         " workers within an hour; accepted: at most ", most_));
      }
    }
    workers[worker] = now;
    return absl::OkStatus();
  }

 private:
  const int64_t most_;
  platform::Mutex mutex_;
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, absl::Time>> principals_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_REGISTERED_WORKERS_H_
