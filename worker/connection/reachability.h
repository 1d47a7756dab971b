// Logs when the server becomes unreachable and reachable again, without filling the log during an
// outage.
#ifndef LENGTHWISE_WORKER_CONNECTION_REACHABILITY_H_
#define LENGTHWISE_WORKER_CONNECTION_REACHABILITY_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/log.h"
#include "platform/mutex.h"

namespace lengthwise::worker {

// Thread-safe.
class Reachability {
 public:
  struct Options {
    // Subject of the log lines, such as "server 127.0.0.1:7070".
    std::string subject;
    // Interval between repeated warnings during an outage.
    absl::Duration repeat = absl::Minutes(1);
    std::function<absl::Time()> now;                                  // default: absl::Now
    std::function<void(platform::LogLevel, const std::string&)> log;  // default: platform::Log
  };

  explicit Reachability(Options options);

  // Logs "server 127.0.0.1:7070 unreachable (connection refused); retrying" at the first failure
  // after a success and then once per `repeat`. `answered`: "answers UNAVAILABLE: disk full",
  // because the server itself sent the status.
  void Failed(const absl::Status& status, bool answered = false);

  // Logs "server 127.0.0.1:7070 reached again" after a failure.
  void Succeeded();

 private:
  const Options options_;
  platform::Mutex mutex_;
  // Time of the last warning in this outage; InfinitePast while the server is reachable.
  absl::Time last_logged_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// Returns an error's message for a place within a line: "connection refused" (rpc::ConnectFailure).
std::string ShortReason(const absl::Status& status);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_REACHABILITY_H_
