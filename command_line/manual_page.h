// Generates manual pages in roff.
#ifndef LENGTHWISE_COMMAND_LINE_MANUAL_PAGE_H_
#define LENGTHWISE_COMMAND_LINE_MANUAL_PAGE_H_

#include <string>

#include "command_line/description.h"

namespace lengthwise::command_line {

// Returns "lengthwise-auth-create-token" for "lengthwise auth create-token".
std::string ManualPageName(const CommandDescription& command);

// Returns the page of a command for man(1). The program's own page also lists the commands, the
// environment, files and exit codes. `version` is the program's version.
std::string ManualPage(const CommandDescription& command, const std::string& version);

}  // namespace lengthwise::command_line

#endif  // LENGTHWISE_COMMAND_LINE_MANUAL_PAGE_H_
