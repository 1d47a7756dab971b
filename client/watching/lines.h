// Renders an experiment as lines: a live view for terminals, and its history for files, pipes and
// logs.
#ifndef LENGTHWISE_CLIENT_WATCHING_LINES_H_
#define LENGTHWISE_CLIENT_WATCHING_LINES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/display/terminal.h"
#include "client/watching/experiment_view.h"

namespace lengthwise::client {

// Tracks a watcher's connection and words its loss and return for the user. Not thread-safe.
class LinkState {
 public:
  // `connection` says why there is none; OK while connected. Returns true if it was just lost or
  // just came back.
  bool Update(const absl::Status& connection, absl::Time now);

  bool lost() const { return !connection_.ok(); }
  // "connection lost 0:12 ago, trying again"; for half a minute after a reconnect "connected again
  // after 0:12"; empty otherwise.
  std::string Note(absl::Time now) const;
  // Why it is lost; empty while connected.
  std::string reason() const { return std::string(connection_.message()); }

 private:
  absl::Status connection_;
  absl::Time lost_ = absl::InfinitePast();
  absl::Time back_ = absl::InfinitePast();
};

struct LiveLinesOptions {
  // "quickstart-1".
  std::string title;
  // Size of the terminal in characters, each at least 1. No line is wider than `width`, and there
  // are at most `height` lines.
  int width = 80;
  int height = 24;
  // Since the experiment was created.
  absl::Duration elapsed;
  absl::Time now;
  LinkState link;
};

// Returns the live view: a headline, the column names and one line per trial, in grid order. With
// more trials than lines, running trials come first, then failed ones, then those that ended last;
// the last line counts the rest. A narrow terminal loses the least informative columns first.
std::vector<std::string> LiveLines(const ExperimentView& view, const LiveLinesOptions& options,
                                   const Palette& palette);

// "running", "succeeded".
std::string StateWord(v1::TrialState state);

// "1 running, 3 queued, 2 done".
std::string DescribeCounts(const v1::TrialCounts& counts);

// The history. The events and their own times alone decide which lines are printed, so that a late
// reader gets the same lines as an early one. Not thread-safe.
class PlainLines {
 public:
  // Prints at most one training line per trial and `interval`.
  explicit PlainLines(absl::Duration interval, absl::TimeZone zone)
      : interval_(interval), zone_(zone) {}

  // Returns the line of an event that was just applied to `view`; nullopt if it has none.
  std::optional<std::string> Line(const ExperimentView& view, const v1::Event& event);

 private:
  const absl::Duration interval_;
  const absl::TimeZone zone_;
  std::map<std::string, absl::Time> last_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_LINES_H_
