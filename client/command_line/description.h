// The command line as data, read from its CLI11 definition: what completion and manual pages are
// made of, so that neither can forget an option.
#ifndef LENGTHWISE_CLIENT_COMMAND_LINE_DESCRIPTION_H_
#define LENGTHWISE_CLIENT_COMMAND_LINE_DESCRIPTION_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace lengthwise::client {

struct OptionDescription {
  // "--out" and "-o", the long one first; of a positional argument its name alone, "experiment".
  std::vector<std::string> names;
  std::string help;
  // Of the value: "FILE"; of a positional argument its name in capitals.
  std::string value;
  // Everything that is accepted, where that is a list.
  std::vector<std::string> choices;
  // What else is known of what is accepted: "a number from 1 to 64"; may be empty.
  std::string accepted;
  // In effect without the option; may be empty.
  std::string fallback;
  // Options that belong together; "Options" for most.
  std::string group;
  bool positional = false;
  bool required = false;
  bool repeated = false;
  // False of a flag.
  bool takes_value = true;
};

struct CommandDescription {
  // "watch", "create-token"; of the program its own name.
  std::string name;
  // "lengthwise auth create-token".
  std::string full_name;
  std::string help;
  // Below the help: examples.
  std::string footer;
  std::string group;
  // In the order of their definition; without those that help texts do not show.
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
};

CommandDescription Describe(const CLI::App& app);
OptionDescription Describe(const CLI::Option& option);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMAND_LINE_DESCRIPTION_H_
