// Server streams for downloads, large answers and backups. A stream that waits for its client holds
// no thread.
//
//   turn -> pool: next response -> write -> pool: next response -> write ... end
//
// The stream of a client that reads nothing for some time ends with DEADLINE_EXCEEDED.
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
#include "rpc/status.h"
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

// Returns the next response, or nullopt at the end. Called on the pool, one call at a time.
template <typename Response>
using Next = std::function<absl::StatusOr<std::optional<Response>>()>;

template <typename Response>
class PushStream final
    : public OwnedStream<PushStream<Response>, grpc::ServerWriteReactor<Response>> {
 public:
  // Opens the source of responses. Runs once, on the pool.
  using Open = std::function<absl::StatusOr<Next<Response>>()>;

  // `threads`, `streams` and `method` must outlive the stream.
  static PushStream* Start(grpc::CallbackServerContext* context, const Caller& caller,
                           absl::string_view method, Open open, TransferThreads& threads,
                           OpenStreams& streams) {
    const std::shared_ptr<PushStream> stream(
        new PushStream(context, caller, method, threads, streams));
    stream->Own();
    threads.Begin(stream->client_, [stream, open = std::move(open)] { stream->Begin(open); });
    return stream.get();
  }

  void Stop(const absl::Status& reason) override {
    platform::MutexLock lock(mutex_);
    if (stopped_.ok()) stopped_ = reason;
  }

  void StopStalled() override {
    {
      platform::MutexLock lock(mutex_);
      const auto lasts = absl::FromChrono(std::chrono::steady_clock::now() - write_began_);
      if (!writing_ || lasts < threads_.patience) return;
      // OnWriteDone leaves the rest to this function, so the call exists until then
      giving_up_ = true;
    }
    const absl::Status given_up = absl::DeadlineExceededError(absl::StrCat(
        "the client read nothing of the answer for ", absl::FormatDuration(threads_.patience),
        "; call again, and read continuously"));
    // Finish would wait for the write. Cancelling ends the write.
    grpc_call_cancel_with_status(context_->c_call(), GRPC_STATUS_DEADLINE_EXCEEDED,
                                 std::string(given_up.message()).c_str(), nullptr);
    {
      platform::MutexLock lock(mutex_);
      stopped_ = given_up;
      giving_up_ = false;
      if (!written_) return;
      writing_ = false;
    }
    SubmitStep();
  }

  // Called by gRPC.
  void OnWriteDone(bool ok) override {
    if (!ok) this->OnCancel();
    {
      platform::MutexLock lock(mutex_);
      if (giving_up_) {
        written_ = true;
        return;
      }
      writing_ = false;
    }
    SubmitStep();
  }

 private:
  PushStream(grpc::CallbackServerContext* context, const Caller& caller, absl::string_view method,
             TransferThreads& threads, OpenStreams& streams)
      : OwnedStream<PushStream, grpc::ServerWriteReactor<Response>>(streams),
        context_(context),
        client_(ClientOf(*context, caller)),
        payer_(PayerOf(*context, caller)),
        method_(method),
        threads_(threads) {}

  void Begin(const Open& open) {
    absl::Status status = this->streams_.answers().CheckRoom(payer_, method_);
    {
      platform::MutexLock lock(mutex_);
      status.Update(stopped_);
    }
    if (!status.ok()) return End(status);
    absl::StatusOr<Next<Response>> next = open();
    if (!next.ok()) return End(next.status());
    next_ = *std::move(next);
    Step();
  }

  void SubmitStep() {
    threads_.pool.Submit(client_, [self = this->shared_from_this()] { self->Step(); });
  }

  // On the pool: sends the next response, or ends the stream.
  void Step() {
    share_.reset();
    absl::StatusOr<std::optional<Response>> response = next_();
    if (response.ok() && response->has_value()) {
      absl::StatusOr<AnswerBudget::Share> share =
          this->streams_.answers().Take(payer_, method_, **response);
      if (share.ok()) share_ = *std::move(share);
      if (!share.ok()) response = share.status();
    }
    absl::Status interruption;
    {
      platform::MutexLock lock(mutex_);
      interruption = stopped_;
      if (interruption.ok() && response.ok() && response->has_value()) {
        response_ = **std::move(response);
        writing_ = true;
        write_began_ = std::chrono::steady_clock::now();
      }
    }
    if (!response.ok()) return End(interruption.ok() ? response.status() : interruption);
    if (!interruption.ok()) return End(interruption);
    if (!response->has_value()) return End(absl::OkStatus());
    this->StartWrite(&response_);
  }

  // On the pool.
  void End(const absl::Status& status) {
    next_ = nullptr;  // here, not on gRPC's thread, because it may close a file
    threads_.End(client_);
    this->Finish(rpc::ToGrpcStatus(status));  // last: OnDone may be called at any time from here on
  }

  grpc::CallbackServerContext* const context_;
  const std::string client_;
  const std::string payer_;
  const absl::string_view method_;
  TransferThreads& threads_;
  // Used by one Step at a time.
  Next<Response> next_;
  AnswerBudget::Share share_;  // of response_
  Response response_;          // gRPC's while writing_

  platform::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // Why to stop writing: the client was given up or left, or the stream was stopped.
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point write_began_ ABSL_GUARDED_BY(mutex_);
  bool giving_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool written_ ABSL_GUARDED_BY(mutex_) = false;  // a write was done while giving_up_
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_PUSH_STREAM_H_
