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

std::vector<OpenStreams::Alive> OpenStreams::List() {
  std::vector<Alive> alive;
  platform::MutexLock lock(mutex_);
  for (const auto& [key, open] : streams_) {
    std::shared_ptr<StoppableStream> stream = open.stream.lock();
    if (stream == nullptr) continue;
    Alive& added = alive.emplace_back(Alive{.stream = std::move(stream), .caller = std::nullopt});
    if (open.admission.has_value()) added.caller = open.admission->caller;
  }
  return alive;
}

void OpenStreams::StopAll() {
  {
    platform::MutexLock lock(mutex_);
    stopped_ = true;
  }
  for (const Alive& open : List()) open.stream->Stop(Stopping());
}

void OpenStreams::Check(const std::function<absl::Status(const Caller&)>& check) {
  std::map<std::string, absl::Status> tokens;
  for (const Alive& open : List()) {
    open.stream->StopStalled();
    if (!open.caller.has_value()) continue;
    const auto [token, is_new] = tokens.try_emplace(open.caller->token_id);
    if (is_new) token->second = check(*open.caller);
    if (!token->second.ok()) open.stream->Stop(token->second);
  }
}

OpenStreams::Lags OpenStreams::ReadLags(absl::Time now) {
  Lags lags;
  for (const Alive& open : List()) {
    const absl::Duration lag = open.stream->Lag(now);
    if (lag <= absl::ZeroDuration()) continue;
    ++lags.behind;
    lags.longest = std::max(lags.longest, lag);
  }
  return lags;
}

}  // namespace lengthwise::server
