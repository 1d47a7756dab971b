#include "server/services/open_streams.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lengthwise::server {

void OpenStreams::Add(const std::shared_ptr<StoppableStream>& stream) {
  {
    platform::MutexLock lock(mutex_);
    if (!stopped_) {
      streams_.emplace(stream.get(), Open{.stream = stream, .kept = nullptr});
      return;
    }
  }
  stream->Stop();
}

void OpenStreams::Remove(const StoppableStream* stream) {
  std::shared_ptr<void> kept;  // destroyed without the lock
  platform::MutexLock lock(mutex_);
  const auto open = streams_.find(stream);
  if (open == streams_.end()) return;
  kept = std::move(open->second.kept);
  streams_.erase(open);
}

void OpenStreams::Attach(const StoppableStream* stream, std::shared_ptr<void> kept) {
  platform::MutexLock lock(mutex_);
  if (const auto open = streams_.find(stream); open != streams_.end()) {
    open->second.kept = std::move(kept);
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
    if (const std::shared_ptr<StoppableStream> stream = open.stream.lock()) stream->Stop();
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
