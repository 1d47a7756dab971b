// EventLog: trials' histories for watchers and queries. It reads pages of the stored log, returns
// the newest progress of running trials, and wakes subscribers when there is more.
#ifndef LENGTHWISE_SERVER_COORDINATION_EVENT_LOG_H_
#define LENGTHWISE_SERVER_COORDINATION_EVENT_LOG_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"
#include "server/coordination/ledger.h"
#include "server/coordination/running_trials.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Usual size of a page of events. It is small because the server holds one page, in three times its
// size, for each watcher that does not read.
inline constexpr int64_t kEventPageBytes = 16 << 10;

struct EventPage {
  std::vector<v1::Event> events;  // in ascending order of position
  // Start position of the next page.
  int64_t next_position = 0;
  // `at_end`: no committed event lies beyond this page, and `unfinished_trials` trials have not
  // ended.
  bool at_end = false;
  int64_t unfinished_trials = 0;
};

// A cache of pages of events, for many watchers that read the same page. A page is served until its
// experiment changes. It holds a few pages regardless of the number of watchers. Thread-safe.
class RecentPages {
 public:
  struct Key {
    // Name of an experiment or a trial.
    std::string name;
    int64_t start_position = 0;
    int64_t max_events = 0;
    int64_t max_bytes = 0;
    bool log_only = false;
    bool operator==(const Key&) const = default;
  };

  // Returns the page, or sets the experiment's version, with which the caller may add the page
  // after reading it. Anything read after this call is at least as new as the version.
  std::optional<EventPage> Find(absl::string_view experiment, const Key& key, int64_t& version);
  // Discards the page if the experiment has changed since the version.
  void Add(absl::string_view experiment, const Key& key, int64_t version, const EventPage& page);

  // Called after a commit, before its subscribers are woken.
  void Changed(absl::string_view experiment);

 private:
  struct Entry {
    std::string experiment;
    Key key;
    EventPage page;
  };

  int64_t& VersionOf(absl::string_view experiment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  platform::Mutex mutex_;
  // By the experiment's hash. Experiments that share a version lose at most a page.
  std::array<int64_t, 1024> versions_ ABSL_GUARDED_BY(mutex_) = {};
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // newest first
};

// Thread-safe. Reads block on the store, on the caller's thread, and see only committed events.
class EventLog {
 public:
  // Ends when this is destroyed, before the event log.
  using Subscription = std::shared_ptr<void>;

  // Both references must outlive it.
  EventLog(Storage& storage, RunningTrials& running_trials)
      : storage_(storage), running_trials_(running_trials) {}

  // Events of an experiment or a trial from `start_position` on: at most `max_events` and about
  // `max_bytes`, or a single larger event. With `log_only`, only log lines and changes of state.
  // NOT_FOUND. INVALID_ARGUMENT if the log ends before `start_position`.
  absl::StatusOr<EventPage> ReadEvents(absl::string_view experiment_or_trial,
                                       int64_t start_position, int64_t max_events,
                                       bool log_only = false, int64_t max_bytes = kEventPageBytes);
  // Calls `take` for each event of one kind (field number in Event's oneof) of an experiment or a
  // trial, ordered by the trial's index, then by position. NOT_FOUND.
  absl::Status ForEachEvent(absl::string_view experiment_or_trial, int fact_field_number,
                            const std::function<void(const v1::Event&)>& take);

  // The newest progress of running trials of an experiment, or of one trial, that was reported
  // after `since`, in the order of the reports; at most `max_trials`. `since` is a cursor: start at
  // 0; it is advanced past the trials returned.
  std::vector<v1::TrialProgress> ReadProgress(absl::string_view experiment_or_trial,
                                              int64_t max_trials, int64_t& since);

  // Calls `wake` after each commit that added events to the experiment, ended its last trial or
  // deleted it. Calls `progress` for each TrialProgress once ReadProgress returns it. A
  // subscription to a trial gets the calls of its experiment. Callbacks run on any thread, under
  // the subscription's lock: they must not block, destroy the subscription, or take a lock that
  // another thread holds while destroying it. No callback runs after the subscription ends.
  Subscription Subscribe(absl::string_view experiment_or_trial, std::function<void()> wake,
                         std::function<void(const v1::TrialProgress&)> progress);
  // Number of active subscriptions.
  int64_t subscriptions() {
    platform::MutexLock lock(mutex_);
    return static_cast<int64_t>(subscribers_.size());
  }

  // Called after a commit: invalidates cached pages, updates the running trials and wakes
  // subscribers.
  void Publish(const Effects& effects);

 private:
  struct Subscriber {
    platform::Mutex mutex;
    bool active ABSL_GUARDED_BY(mutex) = true;
    std::function<void()> wake;
    std::function<void(const v1::TrialProgress&)> progress;
  };

  void ForEachSubscriber(absl::string_view experiment,
                         const std::function<void(const Subscriber&)>& call);

  Storage& storage_;
  RunningTrials& running_trials_;
  RecentPages recent_pages_;
  platform::Mutex mutex_;
  // By the experiment's id.
  std::multimap<std::string, std::shared_ptr<Subscriber>, std::less<>> subscribers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EVENT_LOG_H_
