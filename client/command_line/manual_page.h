// Manual pages, in roff.
#ifndef LENGTHWISE_CLIENT_COMMAND_LINE_MANUAL_PAGE_H_
#define LENGTHWISE_CLIENT_COMMAND_LINE_MANUAL_PAGE_H_

#include <string>

#include "client/command_line/description.h"

namespace lengthwise::client {

// "lengthwise-auth-create-token" of "lengthwise auth create-token".
std::string ManualPageName(const CommandDescription& command);

// The page of a command, for man(1); of the program itself it also lists the commands, the
// environment, files and exit codes. `version` is that of the program.
std::string ManualPage(const CommandDescription& command, const std::string& version);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMAND_LINE_MANUAL_PAGE_H_
