// Pages of events that were read a moment ago, for the watchers that want the same.
#ifndef LENGTHWISE_SERVER_COORDINATION_RECENT_PAGES_H_
#define LENGTHWISE_SERVER_COORDINATION_RECENT_PAGES_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"
#include "proto/event.pb.h"

namespace lengthwise::server {

struct EventPage {
  std::vector<v1::Event> events;  // ascending positions
  // Where the next page starts.
  int64_t next_position = 0;
  // Nothing committed lies beyond this page, and this many trials have not ended.
  bool at_end = false;
  int64_t unfinished_trials = 0;
};

// A page is given out until its experiment changes. Keeps a few pages, whatever the number of
// watchers. Thread-safe.
class RecentPages {
 public:
  struct Key {
    // Of an experiment or a trial.
    std::string name;
    int64_t start_position = 0;
    int64_t max_events = 0;
    bool log_only = false;
    bool operator==(const Key&) const = default;
  };
  // The state of an experiment for which a page is read.
  struct Ticket {
    int64_t changes = 0;
  };

  // The page, or a ticket with which it may be added when it was read: what is read after this call
  // is at least as new.
  std::optional<EventPage> Find(absl::string_view experiment, const Key& key, Ticket& ticket);
  // Drops the page if the experiment has changed since the ticket.
  void Add(absl::string_view experiment, const Key& key, const Ticket& ticket,
           const EventPage& page);

  // After a commit, before anybody is woken by it.
  void Changed(absl::string_view experiment);

 private:
  struct Entry {
    std::string experiment;
    Key key;
    EventPage page;
  };

  platform::Mutex mutex_;
  // Changes of experiments that are or were read; one that changes without a reader has no entry.
  absl::flat_hash_map<std::string, int64_t> changes_ ABSL_GUARDED_BY(mutex_);
  int64_t next_change_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the newest first
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_RECENT_PAGES_H_
