// Server streams for downloads, large answers and backups. A stream that waits for its client holds
// no thread.
//
//   turn -> pool: next response -> write -> pool: next response -> write ... end
#ifndef LENGTHWISE_SERVER_API_PUSH_STREAM_H_
#define LENGTHWISE_SERVER_API_PUSH_STREAM_H_

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "platform/mutex.h"
#include "platform/work_pool.h"
#include "server/api/open_streams.h"
#include "server/security/gate.h"

namespace lengthwise::server {

// Name of the client whose streams count together. Workers may share a token but have separate
// connections, and callers without tokens have no principal: both count by connection.
inline std::string ClientOf(const grpc::CallbackServerContext& context, const Caller& caller) {
  const bool has_token = !caller.token_id.empty() && caller.role != v1::WORKER;
  return has_token ? caller.principal : context.peer();
}

// Who answers for the memory of a call (AnswerBudget). More connections of workers bring no more.
inline std::string PayerOf(const grpc::CallbackServerContext& context, const Caller& caller) {
  if (caller.role != v1::WORKER) return ClientOf(context, caller);
  return absl::StrCat("the workers of ", caller.principal);
}

// The threads that serve streams, and the limit of concurrent streams: a stream that has begun
// holds an open file or its whole answer, and the message being moved. Thread-safe.
class TransferThreads {
 public:
  // Maximum number of streams that have begun and not ended: per client and in total, unless the
  // constructor gets other numbers.
  static constexpr int kStreamsOfAClient = 16;
  static constexpr int kStreams = 512;

  TransferThreads(int threads, absl::Duration longest_wait, absl::Duration patience,
                  int streams = kStreams, int streams_of_a_client = kStreamsOfAClient)
      : streams_(streams),
        streams_of_a_client_(streams_of_a_client),
        pool(threads, longest_wait),
        patience(patience) {}

  // Runs `begin` on the pool when it is the turn of one of the client's streams. The client with
  // the fewest streams that have begun is next.
  void Begin(const std::string& client, std::function<void()> begin) {
    platform::MutexLock lock(mutex_);
    Client& of = clients_[client];
    of.waiting.push_back(std::move(begin));
    ++waiting_;
    // If there is room, every other stream that waits is beyond its client's limit.
    if (begun_ < streams_ && of.begun < streams_of_a_client_) BeginNext(client, of);
  }
  // A stream of `client` that had begun has ended.
  void End(const std::string& client) {
    platform::MutexLock lock(mutex_);
    const auto of = clients_.find(client);
    --begun_;
    if (--of->second.begun == 0 && of->second.waiting.empty()) clients_.erase(of);
    BeginWaiting();
  }

 private:
  struct Client {
    int begun = 0;
    std::deque<std::function<void()>> waiting;
  };

  void BeginWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (waiting_ > 0 && begun_ < streams_) {
      auto next = clients_.end();
      for (auto each = clients_.begin(); each != clients_.end(); ++each) {
        if (each->second.waiting.empty() || each->second.begun == streams_of_a_client_) continue;
        if (next == clients_.end() || each->second.begun < next->second.begun) next = each;
      }
      if (next == clients_.end()) return;
      BeginNext(next->first, next->second);
    }
  }
  void BeginNext(const std::string& name, Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++begun_;
    ++client.begun;
    --waiting_;
    pool.Submit(name, std::move(client.waiting.front()));
    client.waiting.pop_front();
  }

  const int streams_;
  const int streams_of_a_client_;
  platform::Mutex mutex_;
  std::map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;

 public:
  // Declared after everything that its tasks use, so it is destroyed first.
  platform::WorkPool pool;
  // The stream of a client that reads no response, or sends no part of an upload, for this long
  // ends with DEADLINE_EXCEEDED.
  const absl::Duration patience;
};

// A stream that begins in its turn among the streams of its client (TransferThreads). It has at
// most one outstanding operation, a read or a write, and otherwise runs on the pool. If the client
// keeps an operation waiting for too long, the stream ends with DEADLINE_EXCEEDED.
template <typename Stream, typename Reactor>
class TransferStream : public OwnedStream<Stream, Reactor> {
 public:
  ~TransferStream() override { grpc_call_unref(call_); }

  // The stream ends when no operation is outstanding.
  void Stop(const absl::Status& reason) override {
    platform::MutexLock lock(mutex_);
    if (stopped_.ok()) stopped_ = reason;
  }

 protected:
  TransferStream(grpc::CallbackServerContext& context, Gate::Admission admission,
                 TransferThreads& threads, OpenStreams& streams)
      : OwnedStream<Stream, Reactor>(std::move(admission), streams),
        client_(ClientOf(context, this->caller())),
        payer_(PayerOf(context, this->caller())),
        threads_(threads),
        call_(context.c_call()) {
    grpc_call_ref(call_);  // Break may come late
  }

  // Why to stop. OK while there is no reason.
  absl::Status stopped() {
    platform::MutexLock lock(mutex_);
    return stopped_;
  }
  // Called before an operation starts. It must not if this returns why to stop.
  absl::Status BeginOperation() {
    platform::MutexLock lock(mutex_);
    if (stopped_.ok()) waits_since_ = std::chrono::steady_clock::now();
    return stopped_;
  }
  // Called when it is done. Runs `next` on the pool.
  void EndOperation(std::function<void()> next) {
    {
      platform::MutexLock lock(mutex_);
      waits_since_.reset();
    }
    threads_.pool.Submit(client_, std::move(next));
  }
  // Stops the stream, and ends an outstanding operation, for which Finish would wait. Without one
  // the call goes on: what the pool does may be the last, and its client is told how it ended.
  void Break(const absl::Status& reason) {
    {
      platform::MutexLock lock(mutex_);
      if (stopped_.ok()) stopped_ = reason;
      if (!waits_since_.has_value()) return;
    }
    grpc_call_cancel_with_status(call_, static_cast<grpc_status_code>(reason.code()),
                                 std::string(reason.message()).c_str(), nullptr);
  }
  // Breaks the stream off if the client does what is said for too long.
  void BreakStalled(absl::string_view does, absl::string_view advice) {
    {
      platform::MutexLock lock(mutex_);
      if (!waits_since_.has_value()) return;
      const auto lasts = absl::FromChrono(std::chrono::steady_clock::now() - *waits_since_);
      if (lasts < threads_.patience) return;
    }
    Break(absl::DeadlineExceededError(absl::StrCat(
        "the client ", does, " for ", absl::FormatDuration(threads_.patience), "; ", advice)));
  }
  // Ends the turn and the call.
  void EndTransfer(const absl::Status& status) {
    threads_.End(client_);
    this->EndCall(status);
  }

  const std::string client_;
  const std::string payer_;
  TransferThreads& threads_;

 private:
  grpc_call* const call_;
  platform::Mutex mutex_;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  // When the outstanding operation began.
  std::optional<std::chrono::steady_clock::time_point> waits_since_ ABSL_GUARDED_BY(mutex_);
};

// Returns the next response, or nullopt at the end. Called on the pool, one call at a time.
template <typename Response>
using Next = std::function<absl::StatusOr<std::optional<Response>>()>;

template <typename Response>
class PushStream final
    : public TransferStream<PushStream<Response>, grpc::ServerWriteReactor<Response>> {
 public:
  // Opens the source of responses. Runs once, on the pool.
  using Open = std::function<absl::StatusOr<Next<Response>>()>;

  // `threads`, `streams` and `method` must outlive the stream.
  static PushStream* Start(grpc::CallbackServerContext& context, Gate::Admission admission,
                           absl::string_view method, Open open, TransferThreads& threads,
                           OpenStreams& streams) {
    const std::shared_ptr<PushStream> stream(
        new PushStream(context, std::move(admission), method, threads, streams));
    stream->Own();
    threads.Begin(stream->client_, [stream, open = std::move(open)] { stream->Begin(open); });
    return stream.get();
  }

  void StopStalled() override {
    this->BreakStalled("read nothing of the answer", "call again, and read continuously");
  }

  // Called by gRPC.
  void OnWriteDone(bool ok) override {
    if (!ok) this->OnCancel();
    this->EndOperation([self = this->shared_from_this()] { self->Step(); });
  }

 private:
  PushStream(grpc::CallbackServerContext& context, Gate::Admission admission,
             absl::string_view method, TransferThreads& threads, OpenStreams& streams)
      : TransferStream<PushStream, grpc::ServerWriteReactor<Response>>(
            context, std::move(admission), threads, streams),
        method_(method) {}

  void Begin(const Open& open) {
    absl::Status status = this->streams_.answers().CheckRoom(this->payer_, method_);
    status.Update(this->stopped());
    if (!status.ok()) return End(status);
    absl::StatusOr<Next<Response>> next = open();
    if (!next.ok()) return End(next.status());
    next_ = *std::move(next);
    Step();
  }

  // On the pool: sends the next response, or ends the stream.
  void Step() {
    share_.reset();
    absl::StatusOr<std::optional<Response>> response = next_();
    if (response.ok() && response->has_value()) {
      absl::StatusOr<AnswerBudget::Share> share =
          this->streams_.answers().Take(this->payer_, method_, **response);
      if (share.ok()) share_ = *std::move(share);
      if (!share.ok()) response = share.status();
    }
    if (absl::Status stopped = this->stopped(); !stopped.ok()) return End(stopped);
    if (!response.ok()) return End(response.status());
    if (!response->has_value()) return End(absl::OkStatus());
    response_ = **std::move(response);
    this->admission_.audited.SetResponse(response_);
    if (absl::Status stopped = this->BeginOperation(); !stopped.ok()) return End(stopped);
    this->StartWrite(&response_);
  }

  // On the pool.
  void End(const absl::Status& status) {
    next_ = nullptr;  // here, not on gRPC's thread, because it may close a file
    this->EndTransfer(status);
  }

  const absl::string_view method_;
  // Used by one Step at a time.
  Next<Response> next_;
  AnswerBudget::Share share_;  // of response_
  Response response_;          // gRPC's while it is written
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_PUSH_STREAM_H_
