// Ends open streams whose token was revoked or has expired. A unary call asks the gate once and is
// over soon; a watcher or a worker stays for days, and asked when it came.
#ifndef LENGTHWISE_SERVER_API_STREAM_GUARD_H_
#define LENGTHWISE_SERVER_API_STREAM_GUARD_H_

#include <thread>

#include "absl/time/time.h"
#include "platform/mutex.h"
#include "server/api/open_streams.h"
#include "server/security/gate.h"

namespace lengthwise::server {

// A thread that looks every `interval`. Both outlive it.
class StreamGuard {
 public:
  StreamGuard(OpenStreams& streams, Gate& gate, absl::Duration interval);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  void Run();

  OpenStreams& streams_;
  Gate& gate_;
  const absl::Duration interval_;

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_STREAM_GUARD_H_
