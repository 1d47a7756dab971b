// RecentPages: a cache of pages of events, for many watchers that read the same page.
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
  std::vector<v1::Event> events;  // in ascending order of position
  // Start position of the next page.
  int64_t next_position = 0;
  // `at_end`: no committed event lies beyond this page, and `unfinished_trials` trials have not
  // ended.
  bool at_end = false;
  int64_t unfinished_trials = 0;
};

// A page is served until its experiment changes. The cache holds a few pages regardless of the
// number of watchers. Thread-safe.
class RecentPages {
 public:
  struct Key {
    // Name of an experiment or a trial.
    std::string name;
    int64_t start_position = 0;
    int64_t max_events = 0;
    bool log_only = false;
    bool operator==(const Key&) const = default;
  };
  // The version of an experiment that a page is read at.
  struct Ticket {
    int64_t changes = 0;
  };

  // Returns the page, or a ticket with which the caller may add it after reading it. Anything read
  // after this call is at least as new as the ticket.
  std::optional<EventPage> Find(absl::string_view experiment, const Key& key, Ticket& ticket);
  // Discards the page if the experiment has changed since the ticket.
  void Add(absl::string_view experiment, const Key& key, const Ticket& ticket,
           const EventPage& page);

  // Called after a commit, before its subscribers are woken.
  void Changed(absl::string_view experiment);

 private:
  struct Entry {
    std::string experiment;
    Key key;
    EventPage page;
  };

  platform::Mutex mutex_;
  // Version of each experiment that has been read. An experiment that was never read has no entry.
  absl::flat_hash_map<std::string, int64_t> changes_ ABSL_GUARDED_BY(mutex_);
  int64_t next_change_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // newest first
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_RECENT_PAGES_H_
