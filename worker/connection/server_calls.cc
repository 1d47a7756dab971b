#include "worker/connection/server_calls.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/support/channel_arguments.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace lengthwise::worker {

absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateServerChannel(
    const rpc::ChannelOptions& options, const Backoff::Options& reconnect) {
  const auto milliseconds = [](absl::Duration duration) {
    return static_cast<int>(absl::ToInt64Milliseconds(duration));
  };
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(rpc::kMaxMessageBytes);
  // With gRPC's default, the worker would notice up to two minutes late that the server is back.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, milliseconds(reconnect.initial));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, milliseconds(reconnect.maximum));
  // Despite its name, this is the timeout of one connection attempt.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  return rpc::CreateChannel(options, arguments);
}

void CallGroup::Cancel() {
  platform::MutexLock lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* context : in_flight_) context->TryCancel();
}

bool CallGroup::is_cancelled() {
  platform::MutexLock lock(mutex_);
  return cancelled_;
}

CallGroup::Call::Call(CallGroup& group, absl::Duration timeout) : group_(group) {
  if (timeout != absl::InfiniteDuration()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  platform::MutexLock lock(group_.mutex_);
  group_.in_flight_.insert(&context_);
  // The group was cancelled before this call began. gRPC remembers TryCancel until the call starts.
  if (group_.cancelled_) context_.TryCancel();
}

CallGroup::Call::~Call() {
  platform::MutexLock lock(group_.mutex_);
  group_.in_flight_.erase(&context_);
}

StallGuard::StallGuard(grpc::ClientContext& context, absl::Duration patience)
    : patience_(patience), end_(After(patience)), thread_([this, &context] {
        platform::MutexLock lock(mutex_);
        while (!done_ && std::chrono::steady_clock::now() < end_) {
          changed_.WaitUntil(mutex_, end_);
        }
        if (done_) return;
        stalled_ = true;
        context.TryCancel();
      }) {}

StallGuard::~StallGuard() {
  {
    platform::MutexLock lock(mutex_);
    done_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void StallGuard::NoteProgress() {
  platform::MutexLock lock(mutex_);
  end_ = After(patience_);
}

absl::Status StallGuard::Explain(absl::Status status) {
  platform::MutexLock lock(mutex_);
  if (status.ok() || !stalled_) return status;
  return absl::DeadlineExceededError(
      absl::StrCat("the transfer moved nothing for ", absl::FormatDuration(patience_)));
}

absl::Status RetryWhileUnavailable(absl::Status status,
                                   const std::function<absl::Status()>& connect,
                                   const Backoff::Options& reconnect, Reachability& reachability,
                                   TimePoint end, const std::shared_future<void>& stop) {
  Backoff backoff(reconnect);
  while (absl::IsUnavailable(status)) {
    reachability.Failed(status);
    if (stop.wait_until(std::min(After(backoff.Next()), end)) == std::future_status::ready) {
      return absl::CancelledError("stopped");
    }
    if (std::chrono::steady_clock::now() >= end) return absl::DeadlineExceededError("idle");
    status = connect();
  }
  return status;
}

absl::Status ToStatus(const grpc::Status& status) {
  absl::Status whole = rpc::FromGrpcStatus(status);
  return rpc::RetryDelay(whole) > absl::ZeroDuration() ? whole : rpc::ToStatus(status);
}

bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      // Other clients have all of the server's room for calls, for a moment.
      return rpc::RetryDelay(status) > absl::ZeroDuration();
  }
}

}  // namespace lengthwise::worker
