#include "server/services/open_streams.h"

#include <utility>

namespace lengthwise::server {

void OpenStreams::Add(const std::shared_ptr<StoppableStream>& stream) {
  {
    platform::MutexLock lock(mutex_);
    if (!stopped_) {
      streams_.emplace(stream.get(), stream);
      return;
    }
  }
  stream->Stop();
}

void OpenStreams::Remove(const StoppableStream* stream) {
  platform::MutexLock lock(mutex_);
  streams_.erase(stream);
}

void OpenStreams::StopAll() {
  std::map<const StoppableStream*, std::weak_ptr<StoppableStream>> streams;
  {
    platform::MutexLock lock(mutex_);
    stopped_ = true;
    streams.swap(streams_);
  }
  // Without the lock: a stream that ends calls Remove.
  for (const auto& [key, weak] : streams) {
    if (const std::shared_ptr<StoppableStream> stream = weak.lock()) stream->Stop();
  }
}

}  // namespace lengthwise::server
