// What shells ask when Tab is pressed.
#ifndef LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_
#define LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_

#include <string>
#include <vector>

#include "client/commands/program.h"

namespace lengthwise::client {

// The hidden command, `lengthwise __complete -- WORD...`.
inline constexpr char kCompleteCommand[] = "__complete";

// Answers as command_line/completion_scripts.h says. Names that the server knows are asked for with
// a short deadline; where it does not answer, there are none, and no error.
int PrintCompletion(const CLI::App& app, Program& program, std::vector<std::string> words);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_COMPLETION_H_
