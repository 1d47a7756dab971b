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
  bool stop = false;
  {
    platform::MutexLock lock(mutex_);
    streams_.emplace(stream.get(), stream);
    stop = stopped_;
  }
  if (stop) stream->Stop(Stopping());
}

std::shared_ptr<StoppableStream> OpenStreams::Remove(const StoppableStream* stream) {
  platform::MutexLock lock(mutex_);
  return std::move(streams_.extract(stream).mapped());
}

std::vector<std::shared_ptr<StoppableStream>> OpenStreams::List() {
  std::vector<std::shared_ptr<StoppableStream>> open;
  platform::MutexLock lock(mutex_);
  for (const auto& [key, stream] : streams_) open.push_back(stream);
  return open;
}

void OpenStreams::StopAll() {
  {
    platform::MutexLock lock(mutex_);
    stopped_ = true;
  }
  for (const auto& stream : List()) stream->Stop(Stopping());
}

void OpenStreams::Check(const std::function<absl::Status(const Caller&)>& check) {
  std::map<std::string, absl::Status> tokens;
  for (const auto& stream : List()) {
    stream->StopStalled();
    const auto [token, is_new] = tokens.try_emplace(stream->caller().token_id);
    if (is_new) token->second = check(stream->caller());
    if (!token->second.ok()) stream->Stop(token->second);
  }
}

OpenStreams::Lags OpenStreams::ReadLags(absl::Time now) {
  Lags lags;
  for (const auto& stream : List()) {
    const absl::Duration lag = stream->Lag(now);
    if (lag <= absl::ZeroDuration()) continue;
    ++lags.behind;
    lags.longest = std::max(lags.longest, lag);
  }
  return lags;
}

}  // namespace lengthwise::server
