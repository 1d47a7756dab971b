// Logs when the server becomes unreachable and reachable again, without filling the log during an
// outage.
#ifndef LENGTHWISE_WORKER_CONNECTION_REACHABILITY_H_
#define LENGTHWISE_WORKER_CONNECTION_REACHABILITY_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/log.h"
#include "platform/mutex.h"

namespace lengthwise::worker {

// Thread-safe.
class Reachability {
 public:
  using Clock = std::function<absl::Time()>;
  using Write = std::function<void(platform::LogLevel, absl::string_view)>;

  // `subject` is that of the log lines, such as "server 127.0.0.1:7070". Only tests pass `now` and
  // `write`.
  explicit Reachability(std::string subject, Clock now = absl::Now, Write write = platform::Log);

  // Logs "server 127.0.0.1:7070 unreachable (connection refused); retrying" at the first failure
  // after a success and then once a minute. `answered`: "answers UNAVAILABLE: disk full", because
  // the server itself sent the status.
  void Failed(const absl::Status& status, bool answered = false);

  // Logs "server 127.0.0.1:7070 reached again" after a failure.
  void Succeeded();

 private:
  const std::string subject_;
  const Clock now_;
  const Write write_;
  platform::Mutex mutex_;
  // Time of the last warning in this outage; InfinitePast while the server is reachable.
  absl::Time last_logged_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// Returns an error's message for a place within a line: "connection refused" (rpc::ConnectFailure).
std::string ShortReason(const absl::Status& status);

}  // namespace lengthwise::worker

#endif  // LENGTHWISE_WORKER_CONNECTION_REACHABILITY_H_
