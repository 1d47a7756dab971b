// Renders the lines of an experiment's live view.
#ifndef LENGTHWISE_CLIENT_WATCHING_LIVE_LINES_H_
#define LENGTHWISE_CLIENT_WATCHING_LIVE_LINES_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/display/terminal_text.h"
#include "client/watching/experiment_view.h"
#include "client/watching/link_state.h"

namespace lengthwise::client {

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

// Returns a headline, the column names and one line per trial, in grid order. With more trials than
// lines, running trials come first, then failed ones, then those that ended last; the last line
// counts the rest. A narrow terminal loses the least informative columns first.
std::vector<std::string> LiveLines(const ExperimentView& view, const LiveLinesOptions& options,
                                   const Palette& palette);

// "1 running, 3 queued, 2 done".
std::string DescribeCounts(const v1::TrialCounts& counts);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_LIVE_LINES_H_
