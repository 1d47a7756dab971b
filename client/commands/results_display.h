// Prints an experiment's results.
#ifndef LENGTHWISE_CLIENT_COMMANDS_RESULTS_DISPLAY_H_
#define LENGTHWISE_CLIENT_COMMANDS_RESULTS_DISPLAY_H_

#include "absl/status/status.h"
#include "client/commands/program.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// Prints a table of accuracies by length and a chart. --output markdown and latex print the table
// alone; json and csv print every length of every trial.
absl::Status PrintResults(Program& program, Connection& connection,
                          const v1::Experiment& experiment, bool with_intervals);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_RESULTS_DISPLAY_H_
