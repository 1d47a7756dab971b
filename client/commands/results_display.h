// Prints what an experiment found.
#ifndef LENGTHWISE_CLIENT_COMMANDS_RESULTS_DISPLAY_H_
#define LENGTHWISE_CLIENT_COMMANDS_RESULTS_DISPLAY_H_

#include "absl/status/status.h"
#include "client/commands/program.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// A table of accuracies by length and a chart; with --output markdown or latex the table alone,
// with json or csv every length of every trial.
absl::Status PrintResults(Program& program, Connection& connection,
                          const v1::Experiment& experiment, bool with_intervals);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_RESULTS_DISPLAY_H_
