// What a mistake on the command line gets: one line that says what to do instead.
#ifndef LENGTHWISE_CLIENT_COMMAND_LINE_MISTAKE_H_
#define LENGTHWISE_CLIENT_COMMAND_LINE_MISTAKE_H_

#include <string>

#include "CLI/CLI.hpp"

namespace lengthwise::client {

// Of a command line that `app` has just refused with `error`. Without the program's name and
// without a line end. CLI11's own words name neither what was given nor, often, what is accepted.
std::string ExplainMistake(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMAND_LINE_MISTAKE_H_
