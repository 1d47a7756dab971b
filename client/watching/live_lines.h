// The lines of a live view of an experiment.
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
  // Of the terminal, in characters; no line is wider, and there are at most `height` lines. Both at
  // least 1.
  int width = 80;
  int height = 24;
  // Since the experiment was created.
  absl::Duration elapsed;
  absl::Time now;
  LinkState link;
};

// A headline, the columns' names, then a line a trial, in the order of the grid. When there are
// more trials than lines, those that run come first, then failed ones, then those that ended last,
// and the rest is counted in the last line. What a narrow terminal has no room for is left out, the
// least telling first.
std::vector<std::string> LiveLines(const ExperimentView& view, const LiveLinesOptions& options,
                                   const Palette& palette);

// "1 running, 3 queued, 2 done".
std::string DescribeCounts(const v1::TrialCounts& counts);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_LIVE_LINES_H_
