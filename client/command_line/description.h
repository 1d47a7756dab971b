// The command line as data, read from its CLI11 definition. Completion, manual pages and the
// explanations of mistakes are generated from it, so that none can miss an option.
#ifndef LENGTHWISE_CLIENT_COMMAND_LINE_DESCRIPTION_H_
#define LENGTHWISE_CLIENT_COMMAND_LINE_DESCRIPTION_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace lengthwise::client {

struct OptionDescription {
  // "--out" and "-o", the long one first. A positional argument has its name alone: "experiment".
  std::vector<std::string> names;
  std::string help;
  // Placeholder of the value: "FILE". A positional argument has its name in capitals.
  std::string value;
  // All accepted values, if they are a list.
  std::vector<std::string> choices;
  // Description of the accepted values: "a number from 1 to 64". May be empty.
  std::string accepted;
  // Default value. May be empty.
  std::string fallback;
  // Heading of the option's group in help texts; "Options" for most.
  std::string group;
  bool positional = false;
  bool required = false;
  bool repeated = false;
  // False for a flag.
  bool takes_value = true;
};

struct CommandDescription {
  // "watch", "create-token"; for the program its own name.
  std::string name;
  // "lengthwise auth create-token".
  std::string full_name;
  std::string help;
  // Text below the options: examples.
  std::string footer;
  std::string group;
  // In the order of their definition, without hidden options.
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
};

CommandDescription Describe(const CLI::App& app);
OptionDescription Describe(const CLI::Option& option);

// Explains `error`, with which `app` has just refused a command line, in one line that says what to
// do instead. It has neither the program's name nor a line end. CLI11's own messages do not name
// the value given and often not the accepted values.
std::string ExplainMistake(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMAND_LINE_DESCRIPTION_H_
