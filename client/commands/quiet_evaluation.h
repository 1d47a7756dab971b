// Evaluates a stored model again, for commands that show what this evaluation records.
#ifndef LENGTHWISE_CLIENT_COMMANDS_QUIET_EVALUATION_H_
#define LENGTHWISE_CLIENT_COMMANDS_QUIET_EVALUATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/commands/local_training.h"
#include "client/commands/program.h"
#include "client/connection/connection.h"

namespace lengthwise::client {

// Adds the user's own input to `evaluation`: text for tasks on text, real numbers for numeric
// tasks, else tokens. The evaluation computes as few scores as possible. INVALID_ARGUMENT for other
// input.
absl::Status AddInput(const std::string& typed, const v1::TrialSpecification& trial,
                      v1::Evaluation& evaluation);

// Evaluates the trial's model without showing progress, and returns the trial of the evaluation.
absl::StatusOr<v1::Trial> EvaluateQuietly(Program& program, Connection& connection,
                                          const v1::Trial& trial, const v1::Evaluation& evaluation,
                                          const LocalWorkers& workers);

// Returns the error that the trial's log names as the reason for recording nothing.
absl::Status WhyNothing(Connection& connection, const v1::Trial& evaluated);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_QUIET_EVALUATION_H_
