// EventLog: trials' histories for watchers and queries. It reads pages of the stored log, returns
// the newest progress of running trials, and wakes subscribers when there is more.
#ifndef LENGTHWISE_SERVER_COORDINATION_EVENT_LOG_H_
#define LENGTHWISE_SERVER_COORDINATION_EVENT_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/event.pb.h"
#include "server/coordination/ledger.h"
#include "server/coordination/recent_pages.h"
#include "server/coordination/running_trials.h"
#include "server/coordination/subscriptions.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Thread-safe. Reads block on the store, on the caller's thread, and see only committed events.
class EventLog {
 public:
  // Both references must outlive it.
  EventLog(Storage& storage, RunningTrials& running_trials)
      : storage_(storage), running_trials_(running_trials) {}

  // Events of an experiment or a trial from `start_position` on: at most `max_events` and about 16
  // KiB, or a single larger event. With `log_only`, only log lines and changes of state. NOT_FOUND.
  // INVALID_ARGUMENT if the log ends before `start_position`.
  absl::StatusOr<EventPage> ReadEvents(absl::string_view experiment_or_trial,
                                       int64_t start_position, int64_t max_events,
                                       bool log_only = false);
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
  // subscription to a trial gets the calls of its experiment. Callbacks run on any thread and must
  // not block. The subscription ends when the returned object is destroyed; no callback runs after
  // that.
  std::unique_ptr<Subscription> Subscribe(absl::string_view experiment_or_trial,
                                          std::function<void()> wake,
                                          std::function<void(const v1::TrialProgress&)> progress);
  // Number of active subscriptions.
  int64_t subscriptions() { return subscriptions_.size(); }

  // Called after a commit: invalidates cached pages, updates the running trials and wakes
  // subscribers.
  void Publish(const Effects& effects);

 private:
  Storage& storage_;
  RunningTrials& running_trials_;
  RecentPages recent_pages_;
  Subscriptions subscriptions_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EVENT_LOG_H_
