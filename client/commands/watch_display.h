// Watches an experiment until it ends.
#ifndef LENGTHWISE_CLIENT_COMMANDS_WATCH_DISPLAY_H_
#define LENGTHWISE_CLIENT_COMMANDS_WATCH_DISPLAY_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/commands/program.h"

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
};

// Draws a live view on a terminal and prints lines elsewhere; with --output json prints one event
// per line. Returns kSuccess, kFailure if a trial failed or was cancelled, kInterrupted after
// Ctrl-C.
absl::StatusOr<int> WatchExperiment(Program& program, Connection& connection,
                                    const WatchOptions& options);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_WATCH_DISPLAY_H_
