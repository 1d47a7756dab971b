// The streams that are open, so that they can be ended with a word instead of being broken: all
// when the server stops, some when who opened them may call no longer.
#ifndef LENGTHWISE_SERVER_API_OPEN_STREAMS_H_
#define LENGTHWISE_SERVER_API_OPEN_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "server/security/gate.h"

namespace lengthwise::server {

class StoppableStream {
 public:
  virtual ~StoppableStream() = default;
  // Ends the stream with `reason`, which is no OK, as soon as no write is under way. Does not
  // block; any thread; may come late, and more than once: the first counts.
  virtual void Stop(const absl::Status& reason) = 0;
  // How long, at `now`, the stream has not had everything that there is; zero for one that has. Any
  // thread.
  virtual absl::Duration Lag(absl::Time now) { return absl::ZeroDuration(); }
};

// Thread-safe.
class OpenStreams {
 public:
  // After StopAll the stream is stopped at once.
  void Add(const std::shared_ptr<StoppableStream>& stream);
  void Remove(const StoppableStream* stream);
  // Holds `admission` until the stream is removed; returns the stream. For a handler that has just
  // started it.
  template <typename Stream>
  Stream* Keep(Stream* stream, Gate::Admission admission) {
    Attach(stream, std::move(admission));
    return stream;
  }
  // With UNAVAILABLE.
  void StopAll();
  // Ends the streams of callers of whom `check` gives an error, with that error. Asks once for each
  // token.
  void StopRefused(const std::function<absl::Status(const Caller&)>& check);

  // Of the open streams: how many are behind, and the longest lag.
  struct Lags {
    int64_t behind = 0;
    absl::Duration longest = absl::ZeroDuration();
  };
  Lags ReadLags(absl::Time now);

 private:
  struct Open {
    std::weak_ptr<StoppableStream> stream;
    std::optional<Gate::Admission> admission;
  };

  void Attach(const StoppableStream* stream, Gate::Admission admission);

  platform::Mutex mutex_;
  std::map<const StoppableStream*, Open> streams_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_OPEN_STREAMS_H_
