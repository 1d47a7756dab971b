#include "absl/hash/hash.h"
#include "server/coordination/event_log.h"

namespace lengthwise::server {
namespace {

// Pages have about 16 KiB, unless they hold one larger event.
constexpr size_t kMostPages = 32;
constexpr int64_t kMaxEventBytes = 256 << 10;

}  // namespace

int64_t& RecentPages::VersionOf(absl::string_view experiment) {
  return versions_[absl::Hash<absl::string_view>()(experiment) % versions_.size()];
}

std::optional<EventPage> RecentPages::Find(absl::string_view experiment, const Key& key,
                                           int64_t& version) {
  platform::MutexLock lock(mutex_);
  version = VersionOf(experiment);
  for (const Entry& entry : entries_) {
    if (entry.key == key) return entry.page;
  }
  return std::nullopt;
}

void RecentPages::Add(absl::string_view experiment, const Key& key, int64_t version,
                      const EventPage& page) {
  // Copying a page of one large event would cost more than reading it.
  if (page.events.size() == 1 && page.events[0].ByteSizeLong() > kMaxEventBytes) return;
  platform::MutexLock lock(mutex_);
  if (VersionOf(experiment) != version) return;
  for (const Entry& entry : entries_) {
    if (entry.key == key) return;
  }
  entries_.push_front({.experiment = std::string(experiment), .key = key, .page = page});
  if (entries_.size() > kMostPages) entries_.pop_back();
}

void RecentPages::Changed(absl::string_view experiment) {
  platform::MutexLock lock(mutex_);
  ++VersionOf(experiment);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.experiment == experiment; });
}

}  // namespace lengthwise::server
