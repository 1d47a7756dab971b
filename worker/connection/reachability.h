// Tells people when the server goes away and comes back, without filling the log while it is away.
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
    // What is reached: "server 127.0.0.1:7070".
    std::string subject;
    // A trouble that lasts is said again this often.
    absl::Duration repeat = absl::Minutes(1);
    std::function<absl::Time()> now;                                  // absent: absl::Now
    std::function<void(platform::LogLevel, const std::string&)> log;  // absent: platform::Log
  };

  explicit Reachability(Options options);

  // Logs "server 127.0.0.1:7070 unreachable (connection refused); retrying" at the first failure
  // after a success and then once per `repeat`.
  void Failed(const absl::Status& status);

  // Logs "server 127.0.0.1:7070 reached again" after a failure.
  void Succeeded();

 private:
  const Options options_;
  platform::Mutex mutex_;
  // When the trouble was last logged; in the infinite past while there is none.
  absl::Time last_logged_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// The part of an error that says what happened: gRPC nests causes ("failed to connect to all
// addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection
// refused" is "connection refused").
std::string ShortReason(const absl::Status& status);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_REACHABILITY_H_
