#include "server/coordination/event_log.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"
#include "rpc/status.h"
#include "server/coordination/messages.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

// Recent pages, and the size of an event beyond which a page is not kept.
constexpr size_t kMostPages = 32;
constexpr int64_t kMaxEventBytes = 256 << 10;

// What a name stands for in the store: keys of an experiment or a trial, and 0 for the other.
struct Named {
  int64_t experiment = 0;
  int64_t trial = 0;
  int64_t unfinished_trials = 0;
};

absl::StatusOr<Named> FindNamed(StorageReader& reader, absl::string_view experiment_or_trial,
                                bool is_trial) {
  if (!is_trial) {
    ASSIGN_OR_RETURN(const ExperimentRecord found, FindExperiment(reader, experiment_or_trial));
    return Named{.experiment = found.key, .unfinished_trials = UnendedTrials(found.counts)};
  }
  ASSIGN_OR_RETURN(const TrialRecord found, FindTrial(reader, experiment_or_trial));
  return Named{.trial = found.key, .unfinished_trials = HasEnded(found.state) ? 0 : 1};
}

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

absl::StatusOr<EventPage> EventLog::ReadEvents(absl::string_view experiment_or_trial,
                                               int64_t start_position, int64_t max_events,
                                               bool log_only, int64_t max_bytes) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseExperimentOrTrialName(experiment_or_trial));
  // After a commit, hundreds of watchers of an experiment read the same page.
  const RecentPages::Key key = {.name = std::string(experiment_or_trial),
                                .start_position = start_position,
                                .max_events = max_events,
                                .max_bytes = max_bytes,
                                .log_only = log_only};
  int64_t version = 0;
  if (std::optional<EventPage> page = recent_pages_.Find(path.experiment, key, version)) {
    return *std::move(page);
  }
  // Afterwards: the page must be at least as new as the version.
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  EventPage page;
  page.at_end = true;
  page.next_position = std::max<int64_t>(start_position, 1);
  int64_t bytes = 0;
  absl::Status damaged;
  const auto take = [&](const EventRecord& event, absl::string_view trial_id) {
    // A page has at least one event, however large it is, so that its reader advances.
    const bool full = static_cast<int64_t>(page.events.size()) >= max_events ||
                      (bytes > 0 && bytes + static_cast<int64_t>(event.payload.size()) > max_bytes);
    if (full) {
      page.at_end = false;
      return false;
    }
    bytes += static_cast<int64_t>(event.payload.size());
    page.next_position = event.position + 1;
    absl::StatusOr<v1::Event> message = ReadEvent(*reader, event, path.experiment, trial_id);
    damaged = message.status();
    if (!damaged.ok()) return false;
    page.events.push_back(*std::move(message));
    return true;
  };
  ASSIGN_OR_RETURN(const Named named, FindNamed(*reader, experiment_or_trial, !path.trial.empty()));
  page.unfinished_trials = named.unfinished_trials;
  absl::Status status =
      reader->ForEachEvent(named.experiment, named.trial, start_position, log_only, take);
  if (status.ok()) status = damaged;
  if (!status.ok()) return status;
  if (page.at_end && (log_only || page.events.empty())) {
    ASSIGN_OR_RETURN(const int64_t last, reader->LastPosition());
    if (start_position > last + 1) {
      return rpc::InvalidField("start_position",
                               absl::StrCat("got ", start_position, ", expected at most ", last + 1,
                                            ", the end of the log; a restored backup's log ends "
                                            "earlier: start at 0"));
    }
    // The next read starts behind the events that are not part of the log.
    if (log_only) page.next_position = std::max(page.next_position, last + 1);
  }
  recent_pages_.Add(path.experiment, key, version, page);
  return page;
}

absl::Status EventLog::ForEachEvent(absl::string_view experiment_or_trial, int fact_field_number,
                                    const std::function<void(const v1::Event&)>& take) {
  ASSIGN_OR_RETURN(const TrialPath path, ParseExperimentOrTrialName(experiment_or_trial));
  ASSIGN_OR_RETURN(const auto reader, storage_.Read());
  ASSIGN_OR_RETURN(const Named named, FindNamed(*reader, experiment_or_trial, !path.trial.empty()));
  absl::Status damaged;
  const absl::Status status =
      reader->ForEachEventOfKind(named.experiment, named.trial, fact_field_number,
                                 [&](const EventRecord& event, absl::string_view trial_id) {
                                   const absl::StatusOr<v1::Event> message =
                                       ReadEvent(*reader, event, path.experiment, trial_id);
                                   damaged = message.status();
                                   if (damaged.ok()) take(*message);
                                   return damaged.ok();
                                 });
  return status.ok() ? damaged : status;
}

std::vector<v1::TrialProgress> EventLog::ReadProgress(absl::string_view experiment_or_trial,
                                                      int64_t max_trials, int64_t& since) {
  const absl::StatusOr<TrialPath> path = ParseExperimentOrTrialName(experiment_or_trial);
  if (!path.ok()) return {};
  return running_trials_.ProgressSince(
      path->experiment, path->trial.empty() ? absl::string_view() : experiment_or_trial, max_trials,
      since);
}

EventLog::Subscription EventLog::Subscribe(absl::string_view experiment_or_trial,
                                           std::function<void()> wake,
                                           std::function<void(const v1::TrialProgress&)> progress) {
  // A malformed name gets a subscription that is never called. Reads report the error.
  const absl::StatusOr<TrialPath> path = ParseExperimentOrTrialName(experiment_or_trial);
  const auto subscriber = std::make_shared<Subscriber>();
  subscriber->wake = std::move(wake);
  subscriber->progress = std::move(progress);
  platform::MutexLock lock(mutex_);
  const auto place = subscribers_.emplace(path.ok() ? path->experiment : "", subscriber);
  return Subscription(nullptr, [this, subscriber, place](void*) {
    {
      platform::MutexLock locked(mutex_);
      subscribers_.erase(place);
    }
    // Waits for a callback that is running, so that none runs after the destruction.
    platform::MutexLock locked(subscriber->mutex);
    subscriber->active = false;
  });
}

void EventLog::ForEachSubscriber(absl::string_view experiment,
                                 const std::function<void(const Subscriber&)>& call) {
  std::vector<std::shared_ptr<Subscriber>> subscribers;
  {
    platform::MutexLock lock(mutex_);
    const auto [first, last] = subscribers_.equal_range(experiment);
    for (auto each = first; each != last; ++each) subscribers.push_back(each->second);
  }
  for (const std::shared_ptr<Subscriber>& subscriber : subscribers) {
    // Without mutex_: a callback takes locks of its watcher, whose other threads may subscribe or
    // unsubscribe.
    platform::MutexLock lock(subscriber->mutex);
    if (subscriber->active) call(*subscriber);
  }
}

void EventLog::Publish(const Effects& effects) {
  running_trials_.Apply(effects.running);
  for (const auto& [trial, accuracies] : effects.evaluations) {
    running_trials_.Evaluated(trial, accuracies);
  }
  // Before the wake-ups: a subscriber that is woken must not get a cached page without this commit.
  for (const std::string& experiment : effects.reshaped) recent_pages_.Changed(experiment);
  for (const std::string& experiment : effects.experiments) recent_pages_.Changed(experiment);
  for (const std::string& experiment : effects.experiments) {
    ForEachSubscriber(experiment, [](const Subscriber& each) { each.wake(); });
  }
  for (const WorkerProgress& told : effects.progress) {
    const std::optional<std::string> experiment = running_trials_.Progress(told);
    if (!experiment.has_value()) continue;
    ForEachSubscriber(*experiment, [&](const Subscriber& each) { each.progress(told.progress); });
  }
}

}  // namespace lengthwise::server
