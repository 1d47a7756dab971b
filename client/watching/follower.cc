#include "client/watching/follower.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "rpc/status.h"

namespace lengthwise::client {
namespace {

using platform::MutexLock;

// Read-ahead limit. A full queue stops reading, and back-pressure pauses the server's cursor.
constexpr size_t kMostWaiting = 64;

// Before the second try. Doubles with each try, up to the longest.
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(200);
constexpr absl::Duration kLongestBackoff = absl::Seconds(5);

// Maximum retries in a row that a busy server asks for.
constexpr int kMostRefusals = 30;

std::chrono::steady_clock::time_point After(absl::Duration duration) {
  return std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(duration);
}

// Returns true if a retry may succeed.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsInternal(status) || absl::IsUnknown(status) || absl::IsAborted(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

Follower::Follower(Connection& connection, v1::WatchExperimentRequest request)
    : connection_(connection), request_(std::move(request)), thread_([this] { Run(); }) {}

Follower::~Follower() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (stream_ != nullptr) stream_->Cancel();
  }
  changed_.NotifyAll();
  thread_.join();
}

Follower::Update Follower::Next(absl::Duration timeout) {
  const auto deadline = After(timeout);
  Update update;
  MutexLock lock(mutex_);
  while (responses_.empty() && !end_.has_value()) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  update.connection = broken_;
  if (!responses_.empty()) {
    update.response = std::move(responses_.front());
    responses_.pop_front();
    changed_.NotifyAll();
  } else {
    update.end = end_;
  }
  return update;
}

bool Follower::Push(v1::WatchExperimentResponse response) {
  MutexLock lock(mutex_);
  broken_ = absl::OkStatus();
  while (responses_.size() >= kMostWaiting && !stopping_) changed_.Wait(mutex_);
  responses_.push_back(std::move(response));
  changed_.NotifyAll();
  return !stopping_;
}

bool Follower::Pause(absl::Duration backoff) {
  const auto deadline = After(backoff);
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  return !stopping_;
}

void Follower::Run() {
  request_.set_omit_attention_maps(true);
  bool ever_answered = false;
  bool caught_up = false;
  int refusals = 0;
  absl::Duration backoff = kFirstBackoff;
  absl::Status status;
  while (true) {
    const std::unique_ptr<Connection::Stream> stream = connection_.Watch(request_);
    {
      MutexLock lock(mutex_);
      // The destructor cancels only a stream that it finds in stream_, and may have run before.
      if (stopping_) stream->Cancel();
      stream_ = stream.get();
    }
    v1::WatchExperimentResponse response;
    bool wanted = true;
    while (wanted && stream->Next(response)) {
      ever_answered = true;
      refusals = 0;
      backoff = kFirstBackoff;
      // Drops duplicates, whatever the server sends.
      auto& events = *response.mutable_events();
      events.erase(std::remove_if(events.begin(), events.end(),
                                  [&](const v1::Event& event) {
                                    return event.position() < request_.start_position();
                                  }),
                   events.end());
      if (!events.empty()) {
        request_.set_start_position(
            std::max(request_.start_position(), events.rbegin()->position() + 1));
      }
      request_.set_start_position(std::max(request_.start_position(), response.next_position()));
      // Reports caught_up once, even if the connection broke in between.
      if (caught_up) response.set_caught_up(false);
      caught_up = caught_up || response.caught_up();
      wanted = Push(std::move(response));
      response.Clear();
    }
    {
      MutexLock lock(mutex_);
      stream_ = nullptr;
      if (!wanted) stream->Cancel();
      if (stopping_) break;
    }
    status = stream->Finish();
    // A server that asks for a retry is reachable, although it has not answered yet.
    const absl::Duration delay = rpc::RetryDelay(status);
    const bool refused = delay > absl::ZeroDuration() && ++refusals <= kMostRefusals;
    if (status.ok() || !MayPass(status) || !(ever_answered || refused)) break;
    if (absl::IsDeadlineExceeded(status)) continue;  // the stream's own lifetime
    {
      MutexLock lock(mutex_);
      broken_ = status;
      changed_.NotifyAll();
    }
    if (!Pause(std::max(backoff, delay))) break;
    backoff = std::min(2 * backoff, kLongestBackoff);
  }
  MutexLock lock(mutex_);
  end_ = status;
  changed_.NotifyAll();
}

}  // namespace lengthwise::client
