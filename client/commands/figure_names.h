// The figures that `lengthwise plot` draws.
#ifndef LENGTHWISE_CLIENT_COMMANDS_FIGURE_NAMES_H_
#define LENGTHWISE_CLIENT_COMMANDS_FIGURE_NAMES_H_

#include <string>
#include <vector>

namespace lengthwise::client {

std::vector<std::string> FigureNames();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_FIGURE_NAMES_H_
