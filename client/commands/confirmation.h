// The question that commands ask before they do what cannot be undone, or start much work.
#ifndef LENGTHWISE_CLIENT_COMMANDS_CONFIRMATION_H_
#define LENGTHWISE_CLIENT_COMMANDS_CONFIRMATION_H_

#include <string>

#include "absl/status/status.h"
#include "client/commands/program.h"

namespace lengthwise::client {

// Adds --yes, which answers the question.
void AddYesOption(CLI::App* command, bool& yes);

// Asks on standard error and reads the answer from standard input. `deed` completes "This ...":
// "deletes sort-1: 72 trials, 17 MiB". `command` does it without a question: "lengthwise delete
// sort-1 --yes".
//
// OK: the answer is yes. CANCELLED: it is another, or Ctrl-C. FAILED_PRECONDITION: standard input
// is not a terminal; the message names `command`.
absl::Status Confirm(Program& program, const std::string& deed, const std::string& command);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_CONFIRMATION_H_
