#include <utility>

#include "server/coordination/event_log.h"

namespace lengthwise::server {

std::unique_ptr<Subscription> Subscriptions::Subscribe(
    absl::string_view experiment, std::function<void()> wake,
    std::function<void(const v1::TrialProgress&)> progress) {
  auto subscriber = std::make_shared<Subscriber>();
  subscriber->wake = std::move(wake);
  subscriber->progress = std::move(progress);
  {
    platform::MutexLock lock(mutex_);
    subscribers_[std::string(experiment)].push_back(subscriber);
  }
  return std::make_unique<Subscription>([this, subscriber, experiment = std::string(experiment)] {
    {
      platform::MutexLock lock(mutex_);
      const auto list = subscribers_.find(experiment);
      std::erase(list->second, subscriber);
      if (list->second.empty()) subscribers_.erase(list);
    }
    // Waits for a callback that is running, so that none runs after the destruction.
    platform::MutexLock lock(subscriber->mutex);
    subscriber->active = false;
  });
}

int64_t Subscriptions::size() {
  platform::MutexLock lock(mutex_);
  int64_t size = 0;
  for (const auto& [experiment, subscribers] : subscribers_) {
    size += static_cast<int64_t>(subscribers.size());
  }
  return size;
}

std::vector<std::shared_ptr<Subscriptions::Subscriber>> Subscriptions::SubscribersOf(
    absl::string_view experiment) {
  platform::MutexLock lock(mutex_);
  const auto found = subscribers_.find(experiment);
  return found == subscribers_.end() ? std::vector<std::shared_ptr<Subscriber>>() : found->second;
}

void Subscriptions::Wake(absl::string_view experiment) {
  for (const std::shared_ptr<Subscriber>& subscriber : SubscribersOf(experiment)) {
    // Without mutex_: a callback takes locks of its watcher, whose other threads may subscribe or
    // unsubscribe.
    platform::MutexLock lock(subscriber->mutex);
    if (subscriber->active && subscriber->wake) subscriber->wake();
  }
}

void Subscriptions::Progress(absl::string_view experiment, const v1::TrialProgress& progress) {
  for (const std::shared_ptr<Subscriber>& subscriber : SubscribersOf(experiment)) {
    platform::MutexLock lock(subscriber->mutex);
    if (subscriber->active && subscriber->progress) subscriber->progress(progress);
  }
}

}  // namespace lengthwise::server
