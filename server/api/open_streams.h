// OpenStreams: the open streams, so that the server can end them with a status instead of breaking
// them: all when it stops, and single ones when their caller loses access or does nothing. And the
// memory of answers, of streams and of single calls.
#ifndef LENGTHWISE_SERVER_API_OPEN_STREAMS_H_
#define LENGTHWISE_SERVER_API_OPEN_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "server/api/answer_budget.h"
#include "server/security/gate.h"

namespace lengthwise::server {

class StoppableStream {
 public:
  virtual ~StoppableStream() = default;
  // Ends the stream with `reason`, which is not OK, as soon as no write is outstanding. Does not
  // block. Any thread; may be called late and repeatedly: the first reason counts.
  virtual void Stop(const absl::Status& reason) = 0;
  // Ends the stream if its client has read or sent nothing for too long. gRPC does not notice: the
  // client's connection may be alive and answer pings. One thread at a time.
  virtual void StopStalled() {}
  // Time for which the stream has been behind at `now`. Zero if it has sent everything. Any thread.
  virtual absl::Duration Lag(absl::Time now) { return absl::ZeroDuration(); }
};

// Thread-safe.
class OpenStreams {
 public:
  // After StopAll, the stream is stopped at once.
  void Add(const std::shared_ptr<StoppableStream>& stream);
  void Remove(const StoppableStream* stream);
  // Holds `admission` until the stream is removed.
  void Attach(const StoppableStream* stream, Gate::Admission admission);
  // Ends all streams with UNAVAILABLE.
  void StopAll();
  // Ends streams whose clients do nothing (StopStalled), and those of callers for which `check`
  // returns an error, with that error. Checks once per token.
  void Check(const std::function<absl::Status(const Caller&)>& check);

  // Number of open streams that are behind, and the longest lag.
  struct Lags {
    int64_t behind = 0;
    absl::Duration longest = absl::ZeroDuration();
  };
  Lags ReadLags(absl::Time now);

  AnswerBudget& answers() { return answers_; }

 private:
  struct Open {
    std::weak_ptr<StoppableStream> stream;
    std::optional<Gate::Admission> admission;
  };
  struct Alive {
    std::shared_ptr<StoppableStream> stream;
    std::optional<Caller> caller;
  };

  // To be called without the lock: a stream that ends calls Remove.
  std::vector<Alive> List();

  AnswerBudget answers_;
  platform::Mutex mutex_;
  std::map<const StoppableStream*, Open> streams_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// A `Stream` of gRPC's class `Reactor`, which gRPC owns from Own until OnDone.
template <typename Stream, typename Reactor>
class OwnedStream : public Reactor,
                    public StoppableStream,
                    public std::enable_shared_from_this<Stream> {
 public:
  // Called by gRPC. An outstanding operation has ended as well.
  void OnCancel() override { Stop(absl::CancelledError("the client cancelled the call")); }
  void OnDone() override {
    streams_.Remove(this);
    const std::shared_ptr<Stream> self = std::move(self_);  // others may hold it longer
  }

 protected:
  // `streams` must outlive the stream.
  explicit OwnedStream(OpenStreams& streams) : streams_(streams) {}
  void Own() {
    self_ = this->shared_from_this();
    streams_.Add(self_);
  }

  OpenStreams& streams_;

 private:
  std::shared_ptr<Stream> self_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_OPEN_STREAMS_H_
