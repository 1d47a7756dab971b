// Asks for confirmation before a command does something irreversible or starts much work.
#ifndef LENGTHWISE_CLIENT_COMMANDS_CONFIRMATION_H_
#define LENGTHWISE_CLIENT_COMMANDS_CONFIRMATION_H_

#include <string>

#include "absl/status/status.h"
#include "client/commands/program.h"

namespace lengthwise::client {

// Adds --yes, which answers the question.
void AddYesOption(CLI::App* command, bool& yes);

// Asks on standard error and reads the answer from standard input. `deed` completes "This ...":
// "deletes sort-1: 72 trials, 17 MiB". `command` is the command that skips the question:
// "lengthwise delete sort-1 --yes".
//
// OK: the answer is yes. CANCELLED: any other answer, or Ctrl-C. FAILED_PRECONDITION: standard
// input is not a terminal; the message names `command`.
absl::Status Confirm(Program& program, const std::string& deed, const std::string& command);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_CONFIRMATION_H_
