#include "server/api/open_streams.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace lengthwise::server {
namespace {

absl::Status Stopping() { return absl::UnavailableError("the server is stopping; call again"); }

}  // namespace

void OpenStreams::Add(const std::shared_ptr<StoppableStream>& stream) {
  {
    platform::MutexLock lock(mutex_);
    if (!stopped_) {
      streams_.emplace(stream.get(), Open{.stream = stream, .admission = std::nullopt});
      return;
    }
  }
  stream->Stop(Stopping());
}

void OpenStreams::Remove(const StoppableStream* stream) {
  std::optional<Gate::Admission> admission;  // destroyed after the lock is released
  platform::MutexLock lock(mutex_);
  const auto open = streams_.find(stream);
  if (open == streams_.end()) return;
  admission = std::move(open->second.admission);
  streams_.erase(open);
}

void OpenStreams::Attach(const StoppableStream* stream, Gate::Admission admission) {
  platform::MutexLock lock(mutex_);
  if (const auto open = streams_.find(stream); open != streams_.end()) {
    open->second.admission = std::move(admission);
  }
}

void OpenStreams::StopAll() {
  std::map<const StoppableStream*, Open> streams;
  {
    platform::MutexLock lock(mutex_);
    stopped_ = true;
    streams.swap(streams_);
  }
  // Without the lock: a stream that ends calls Remove.
  for (const auto& [key, open] : streams) {
    if (const std::shared_ptr<StoppableStream> stream = open.stream.lock()) {
      stream->Stop(Stopping());
    }
  }
}

void OpenStreams::StopRefused(const std::function<absl::Status(const Caller&)>& check) {
  struct OfToken {
    Caller caller;
    std::vector<std::weak_ptr<StoppableStream>> streams;
  };
  std::map<std::string, OfToken> tokens;
  {
    platform::MutexLock lock(mutex_);
    for (const auto& [key, open] : streams_) {
      if (!open.admission.has_value()) continue;
      OfToken& token = tokens[open.admission->caller.token_id];
      token.caller = open.admission->caller;
      token.streams.push_back(open.stream);
    }
  }
  // Without the lock, for the same reason.
  for (const auto& [id, token] : tokens) {
    const absl::Status status = check(token.caller);
    if (status.ok()) continue;
    for (const std::weak_ptr<StoppableStream>& open : token.streams) {
      if (const std::shared_ptr<StoppableStream> stream = open.lock()) stream->Stop(status);
    }
  }
}

OpenStreams::Lags OpenStreams::ReadLags(absl::Time now) {
  std::vector<std::weak_ptr<StoppableStream>> streams;
  {
    platform::MutexLock lock(mutex_);
    for (const auto& [key, open] : streams_) streams.push_back(open.stream);
  }
  Lags lags;
  for (const std::weak_ptr<StoppableStream>& open : streams) {
    const std::shared_ptr<StoppableStream> stream = open.lock();
    if (stream == nullptr) continue;
    const absl::Duration lag = stream->Lag(now);
    if (lag <= absl::ZeroDuration()) continue;
    ++lags.behind;
    lags.longest = std::max(lags.longest, lag);
  }
  return lags;
}

}  // namespace lengthwise::server
