// What happened to trials, as watchers and queries read it: pages of the stored log, the running
// trials' newest progress, and who is woken when there is more.
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

// Thread-safe; reads block on the store, on the caller's thread, and see what is committed.
class EventLog {
 public:
  // Both must outlive it.
  EventLog(Storage& storage, RunningTrials& running_trials)
      : storage_(storage), running_trials_(running_trials) {}

  // Events of an experiment or of one trial from `start_position` on, at most `max_events` and
  // about 64 KiB, or one that is larger. NOT_FOUND.
  absl::StatusOr<EventPage> ReadEvents(absl::string_view experiment_or_trial,
                                       int64_t start_position, int64_t max_events) {
    return ReadPage(experiment_or_trial, start_position, max_events, /*log_only=*/false);
  }
  // As ReadEvents, but only log lines and changes of state.
  absl::StatusOr<EventPage> ReadLog(absl::string_view experiment_or_trial, int64_t start_position,
                                    int64_t max_events) {
    return ReadPage(experiment_or_trial, start_position, max_events, /*log_only=*/true);
  }
  // Calls `take` with the events of one kind (field number of Event's oneof) of an experiment or a
  // trial, in order of trials' index and then position. NOT_FOUND.
  absl::Status ForEachEvent(absl::string_view experiment_or_trial, int fact_field_number,
                            const std::function<void(const v1::Event&)>& take);

  // The newest progress of each trial that runs now, of an experiment or of one trial, of which
  // something was told after `since`, in the order in which it was told; at most `max_trials`.
  // `since` becomes where to go on; it starts as 0.
  std::vector<v1::TrialProgress> ReadProgress(absl::string_view experiment_or_trial,
                                              int64_t max_trials, int64_t& since);

  // Calls `wake` (on any thread; it must not block) whenever events of the experiment were
  // committed, its last trial ended, or it was deleted; and `progress` for each TrialProgress that
  // comes, when ReadProgress has it. Of a trial: what concerns its experiment. Ends when the
  // returned object is destroyed: after that neither is called.
  std::unique_ptr<Subscription> Subscribe(absl::string_view experiment_or_trial,
                                          std::function<void()> wake,
                                          std::function<void(const v1::TrialProgress&)> progress);
  // Subscriptions that have not ended.
  int64_t subscriptions() { return subscriptions_.size(); }

  // After a commit: pages are read again, and who subscribed is woken. Takes what the workers told
  // of their progress.
  void Publish(const Effects& effects);

 private:
  absl::StatusOr<EventPage> ReadPage(absl::string_view experiment_or_trial, int64_t start_position,
                                     int64_t max_events, bool log_only);

  Storage& storage_;
  RunningTrials& running_trials_;
  RecentPages recent_pages_;
  Subscriptions subscriptions_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_EVENT_LOG_H_
