// The hidden command that completion scripts call when a user presses Tab.
#ifndef LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_
#define LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_

#include <string>
#include <vector>

#include "client/commands/program.h"

namespace lengthwise::client {

// Called as `lengthwise __complete -- WORD...`.
inline constexpr char kCompleteCommand[] = "__complete";

// Answers in the format of command_line/completion_scripts.h. Names from the server are requested
// with a short deadline. If the server does not answer, they are left out without an error.
int PrintCompletion(const CLI::App& app, Program& program, std::vector<std::string> words);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_
