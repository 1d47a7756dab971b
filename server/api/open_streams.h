// OpenStreams: the open streams, so that the server can end them with a status instead of breaking
// them: all when it stops, and single ones when their caller loses access or does nothing. And the
// memory of answers, of streams and of single calls.
#ifndef LENGTHWISE_SERVER_API_OPEN_STREAMS_H_
#define LENGTHWISE_SERVER_API_OPEN_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "rpc/status.h"
#include "server/api/answer_budget.h"
#include "server/security/gate.h"

namespace lengthwise::server {

class StoppableStream {
 public:
  explicit StoppableStream(Gate::Admission admission) : admission_(std::move(admission)) {}
  virtual ~StoppableStream() = default;
  // Ends the stream with `reason`, which is not OK, as soon as no write is outstanding. Does not
  // block. Any thread; may be called late and repeatedly: the first reason counts.
  virtual void Stop(const absl::Status& reason) = 0;
  // Ends the stream if its client has read or sent nothing for too long. gRPC does not notice: the
  // client's connection may be alive and answer pings. One thread at a time.
  virtual void StopStalled() {}
  // Time for which the stream has been behind at `now`. Zero if it has sent everything. Any thread.
  virtual absl::Duration Lag(absl::Time now) { return absl::ZeroDuration(); }

  const Caller& caller() const { return admission_.caller; }

 protected:
  Gate::Admission admission_;
};

// Thread-safe.
class OpenStreams {
 public:
  // Owns the stream until Remove. After StopAll, it is stopped at once.
  void Add(const std::shared_ptr<StoppableStream>& stream);
  std::shared_ptr<StoppableStream> Remove(const StoppableStream* stream);
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
  // Of watches that read large pages (watch_reactor.cc). Of its own: a watch that nobody reads any
  // more keeps its page, and must leave no client without answers.
  static constexpr int64_t kLargePagesBytes = int64_t{64} << 20;
  AnswerBudget& large_pages() { return large_pages_; }

 private:
  // To be called without the lock: a stream that ends calls Remove.
  std::vector<std::shared_ptr<StoppableStream>> List();

  AnswerBudget answers_;
  AnswerBudget large_pages_{kLargePagesBytes};
  platform::Mutex mutex_;
  std::map<const StoppableStream*, std::shared_ptr<StoppableStream>> streams_
      ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// A `Stream` of gRPC's class `Reactor`, which lives from Own until OnDone, or longer if others hold
// it.
template <typename Stream, typename Reactor>
class OwnedStream : public Reactor,
                    public StoppableStream,
                    public std::enable_shared_from_this<Stream> {
 public:
  // Called by gRPC. An outstanding operation has ended as well.
  void OnCancel() override { Stop(absl::CancelledError("the client cancelled the call")); }
  void OnDone() override {
    admission_.stream.reset();
    streams_.Remove(this);
  }

 protected:
  // `streams` must outlive the stream.
  OwnedStream(Gate::Admission admission, OpenStreams& streams)
      : StoppableStream(std::move(admission)), streams_(streams) {}
  void Own() { streams_.Add(this->shared_from_this()); }
  // Ends the call. Last: OnDone may be called at any time from here on.
  void EndCall(const absl::Status& status) {
    admission_.audited.End(status);
    this->Finish(rpc::ToGrpcStatus(status));
  }

  OpenStreams& streams_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_OPEN_STREAMS_H_
