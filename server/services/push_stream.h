// A server stream whose responses a function produces on a thread: for downloads and queries whose
// answers are large. A client that takes its time holds up none but its own streams: while a write
// waits for it, its task does not count for the pool (WorkPool::Wait), and only some streams of one
// client run at once; the others wait for these without a thread.
#ifndef LENGTHWISE_SERVER_SERVICES_PUSH_STREAM_H_
#define LENGTHWISE_SERVER_SERVICES_PUSH_STREAM_H_

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpc/grpc.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "platform/mutex.h"
#include "server/access/gate.h"
#include "server/services/open_streams.h"
#include "server/services/status.h"
#include "server/services/work_pool.h"

namespace lengthwise::server {

// Where push streams run. Thread-safe.
class TransferThreads {
  struct Client {
    int running = 0;
    std::deque<std::function<void()>> queued;
  };
  platform::Mutex mutex_;
  std::map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);

 public:
  TransferThreads(int threads, absl::Duration longest_wait, absl::Duration patience)
      : pool(threads, longest_wait), patience(patience) {}

  // Streams of one client that run at once.
  static constexpr int kStreamsOfAClient = 16;

  // Runs `task` on the pool, once fewer than kStreamsOfAClient of `client` run.
  void Submit(const std::string& client, std::function<void()> task) {
    {
      platform::MutexLock lock(mutex_);
      Client& of = clients_[client];
      if (of.running == kStreamsOfAClient) return of.queued.push_back(std::move(task));
      ++of.running;
    }
    Run(client, std::move(task));
  }

  WorkPool pool;  // behind what its tasks use
  // A client that takes no response for so long is given up: its connection may well be alive, and
  // its pings answered, while it reads nothing.
  const absl::Duration patience;

 private:
  void Run(const std::string& client, std::function<void()> task) {
    pool.Submit([this, client, task = std::move(task)] {
      task();
      std::function<void()> next;
      {
        platform::MutexLock lock(mutex_);
        const auto of = clients_.find(client);
        if (of->second.queued.empty()) {
          if (--of->second.running == 0) clients_.erase(of);
          return;
        }
        next = std::move(of->second.queued.front());
        of->second.queued.pop_front();
      }
      Run(client, std::move(next));
    });
  }
};

template <typename Response>
class PushStream final : public grpc::ServerWriteReactor<Response>,
                         public StoppableStream,
                         public std::enable_shared_from_this<PushStream<Response>> {
 public:
  // Sends one response; waits until the one before was written. False: the client is gone or given
  // up, or the stream was stopped, and nothing more is sent.
  using Send = std::function<bool(Response)>;
  // Runs once, on one of the threads. What it returns is the stream's status; DEADLINE_EXCEEDED for
  // a client that was given up.
  using Produce = std::function<absl::Status(const Send&)>;

  // `threads` and `streams` outlive the stream.
  static PushStream* Start(grpc::CallbackServerContext* context, const Caller& caller,
                           Produce produce, TransferThreads& threads, OpenStreams& streams) {
    std::shared_ptr<PushStream> stream(
        new PushStream(context, std::move(produce), threads, streams));
    stream->self_ = stream;
    streams.Add(stream);
    // Workers may share a token, and have a connection each. So has who needs no token.
    const bool has_token = !caller.token_id.empty() && caller.role != v1::WORKER;
    threads.Submit(has_token ? caller.principal : context->peer(), [stream] { stream->Run(); });
    return stream.get();
  }

  void Stop(const absl::Status& reason) override {
    platform::MutexLock lock(mutex_);
    if (stopped_.ok()) stopped_ = reason;
  }

  // From gRPC.
  void OnWriteDone(bool ok) override {
    platform::MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
    changed_.NotifyAll();
  }
  void OnCancel() override {
    platform::MutexLock lock(mutex_);
    cancelled_ = true;  // an outstanding write ends, too
  }
  void OnDone() override {
    streams_.Remove(this);
    const std::shared_ptr<PushStream> self = std::move(self_);
  }

 private:
  // A write that takes longer gives the pool's place back.
  static constexpr absl::Duration kShortWait = absl::Milliseconds(20);

  PushStream(grpc::CallbackServerContext* context, Produce produce, TransferThreads& threads,
             OpenStreams& streams)
      : context_(context), produce_(std::move(produce)), threads_(threads), streams_(streams) {}

  void Run() {
    absl::Status status =
        produce_([this](Response response) { return Write(std::move(response)); });
    AwaitWrite();
    {
      platform::MutexLock lock(mutex_);
      if (given_up_) {
        status = GivenUp();
      } else if (cancelled_) {
        status = absl::CancelledError("the client cancelled the call");
      } else if (refused_) {
        status = stopped_;
      }
    }
    this->Finish(ToGrpcStatus(status));
  }

  bool Write(Response response) {
    AwaitWrite();
    {
      platform::MutexLock lock(mutex_);
      if (cancelled_ || !stopped_.ok()) {
        refused_ = true;
        return false;
      }
      response_ = std::move(response);
      writing_ = true;
    }
    this->StartWrite(&response_);
    return true;
  }

  // Returns when no write is outstanding.
  void AwaitWrite() {
    if (WriteIsDoneIn(kShortWait)) return;
    const WorkPool::Wait wait(threads_.pool);
    if (WriteIsDoneIn(threads_.patience - kShortWait)) return;
    {
      platform::MutexLock lock(mutex_);
      if (!writing_) return;
      given_up_ = true;
    }
    // Finish would wait for the write; this ends it. The call is there as long as the write is.
    const absl::Status status = GivenUp();
    grpc_call_cancel_with_status(context_->c_call(), GRPC_STATUS_DEADLINE_EXCEEDED,
                                 std::string(status.message()).c_str(), nullptr);
    platform::MutexLock lock(mutex_);
    while (writing_) changed_.Wait(mutex_);
  }

  bool WriteIsDoneIn(absl::Duration time) {
    const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(time);
    platform::MutexLock lock(mutex_);
    while (writing_ && std::chrono::steady_clock::now() < deadline) {
      changed_.WaitUntil(mutex_, deadline);
    }
    return !writing_;
  }

  absl::Status GivenUp() const {
    return absl::DeadlineExceededError(absl::StrCat("nothing of the answer was taken for ",
                                                    absl::FormatDuration(threads_.patience),
                                                    "; ask again, and read what comes"));
  }

  grpc::CallbackServerContext* const context_;
  const Produce produce_;
  TransferThreads& threads_;
  OpenStreams& streams_;
  std::shared_ptr<PushStream> self_;  // gRPC's ownership; released by OnDone
  Response response_;                 // gRPC's while writing_

  platform::Mutex mutex_;
  platform::ConditionVariable changed_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // why; OK while it is not
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SERVICES_PUSH_STREAM_H_
