// Prints an experiment beside a published table.
#ifndef LENGTHWISE_CLIENT_COMMANDS_COMPARE_DISPLAY_H_
#define LENGTHWISE_CLIENT_COMMANDS_COMPARE_DISPLAY_H_

#include "absl/status/status.h"
#include "client/commands/program.h"
#include "client/comparison/published_table.h"
#include "proto/experiment_service.pb.h"

namespace lengthwise::client {

// As --output says. `whole_table` shows also what was not run; csv and json always do.
absl::Status PrintComparison(Program& program, Connection& connection,
                             const v1::Experiment& experiment, PublishedTable table,
                             bool whole_table);

// The keys, with what they are.
absl::Status PrintPublishedTables(Program& program);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_COMPARE_DISPLAY_H_
