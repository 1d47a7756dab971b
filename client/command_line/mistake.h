// Explains a mistake on the command line in one line that says what to do instead.
#ifndef LENGTHWISE_CLIENT_COMMAND_LINE_MISTAKE_H_
#define LENGTHWISE_CLIENT_COMMAND_LINE_MISTAKE_H_

#include <string>

#include "CLI/CLI.hpp"

namespace lengthwise::client {

// Returns the explanation of `error`, with which `app` has just refused a command line. It has
// neither the program's name nor a line end. CLI11's own messages do not name the value given and
// often not the accepted values.
std::string ExplainMistake(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMAND_LINE_MISTAKE_H_
