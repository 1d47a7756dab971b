// Generates manual pages in roff.
#ifndef LENGTHWISE_CLIENT_COMMAND_LINE_MANUAL_PAGE_H_
#define LENGTHWISE_CLIENT_COMMAND_LINE_MANUAL_PAGE_H_

#include <string>

#include "client/command_line/description.h"

namespace lengthwise::client {

// Returns "lengthwise-auth-create-token" for "lengthwise auth create-token".
std::string ManualPageName(const CommandDescription& command);

// Returns the page of a command for man(1). The program's own page also lists the commands, the
// environment, files and exit codes. `version` is the program's version.
std::string ManualPage(const CommandDescription& command, const std::string& version);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMAND_LINE_MANUAL_PAGE_H_
