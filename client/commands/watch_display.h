// Shows an experiment to its end.
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
  // End as soon as a trial runs.
  bool until_running = false;
  // Where lines are printed: none of what is stored, only of what follows.
  bool news_only = false;
  // Called once, when what is stored has come; an error ends the watch with it.
  std::function<absl::Status()> caught_up;
  // Asked a few times a second; an error ends the watch with it.
  std::function<absl::Status()> check;
};

// Draws a live view on a terminal, lines elsewhere, or with --output json one event a line. Returns
// kSuccess, kFailure when a trial has failed or was cancelled, kInterrupted after Ctrl-C.
absl::StatusOr<int> WatchExperiment(Program& program, Connection& connection,
                                    const WatchOptions& options);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_WATCH_DISPLAY_H_
