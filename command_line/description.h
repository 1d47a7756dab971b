// The command line as data, read from its definition (definition.h). Completion, manual pages and
// the explanations of mistakes are generated from it, so that none can miss an option.
#ifndef LENGTHWISE_COMMAND_LINE_DESCRIPTION_H_
#define LENGTHWISE_COMMAND_LINE_DESCRIPTION_H_

#include <string>
#include <vector>

namespace lengthwise::command_line {

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

// Returns "lengthwise-auth-create-token" for "lengthwise auth create-token".
std::string ManualPageName(const CommandDescription& command);

// Returns the page of a command for man(1). The program's own page also lists the commands, the
// environment, files and exit codes. `version` is the program's version.
std::string ManualPage(const CommandDescription& command, const std::string& version);

}  // namespace lengthwise::command_line

#endif  // LENGTHWISE_COMMAND_LINE_DESCRIPTION_H_
