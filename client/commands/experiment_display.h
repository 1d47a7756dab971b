// Shows an experiment to the user: its progress until it ends, and its results.
#ifndef LENGTHWISE_CLIENT_COMMANDS_EXPERIMENT_DISPLAY_H_
#define LENGTHWISE_CLIENT_COMMANDS_EXPERIMENT_DISPLAY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/commands/program.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

struct WatchOptions {
  // Full name.
  std::string experiment;
  int64_t from = 0;
  // Ends the watch as soon as a trial runs.
  bool until_running = false;
  // In line mode: prints new events only, no stored ones.
  bool news_only = false;
  // Called once, after the stored events were received. An error ends the watch and is returned.
  std::function<absl::Status()> caught_up;
  // Called a few times a second. An error ends the watch and is returned.
  std::function<absl::Status()> check;
  // Called after `check`. The warnings it returns are printed.
  std::function<std::vector<std::string>()> warnings;
};

// Watches an experiment until it ends. Draws a live view on a terminal and prints lines elsewhere;
// with --output json prints one event per line. Returns kSuccess, kFailure if a trial failed or was
// cancelled, kInterrupted after Ctrl-C.
absl::StatusOr<int> WatchExperiment(Program& program, Connection& connection,
                                    const WatchOptions& options);

// Prints an experiment's results: a table of accuracies by length and a chart. --output json and
// csv print every length of every trial. `select` (of SummarizeExperimentRequest) chooses the
// curves of a chart without room for all.
absl::Status PrintResults(Program& program, Connection& connection,
                          const v1::Experiment& experiment, bool with_intervals,
                          const std::string& select = "");

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_EXPERIMENT_DISPLAY_H_
