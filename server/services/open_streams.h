// The streams that are open, so that a stopping server can end them with UNAVAILABLE instead of
// breaking them.
#ifndef LENGTHWISE_SERVER_SERVICES_OPEN_STREAMS_H_
#define LENGTHWISE_SERVER_SERVICES_OPEN_STREAMS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "platform/mutex.h"

namespace lengthwise::server {

class StoppableStream {
 public:
  virtual ~StoppableStream() = default;
  // Ends the stream with UNAVAILABLE as soon as no write is under way. Does not block; any thread;
  // may come late.
  virtual void Stop() = 0;
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
  // Holds `kept` until the stream is removed; returns the stream. For what a handler has for a
  // stream that it has just started, such as its place among the caller's streams.
  template <typename Stream>
  Stream* Keep(Stream* stream, std::shared_ptr<void> kept) {
    Attach(stream, std::move(kept));
    return stream;
  }
  void StopAll();

  // Of the open streams: how many are behind, and the longest lag.
  struct Lags {
    int64_t behind = 0;
    absl::Duration longest = absl::ZeroDuration();
  };
  Lags ReadLags(absl::Time now);

 private:
  struct Open {
    std::weak_ptr<StoppableStream> stream;
    std::shared_ptr<void> kept;
  };

  void Attach(const StoppableStream* stream, std::shared_ptr<void> kept);

  platform::Mutex mutex_;
  std::map<const StoppableStream*, Open> streams_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_OPEN_STREAMS_H_
