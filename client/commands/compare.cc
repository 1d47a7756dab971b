// `lengthwise compare A B`: prints two experiments side by side.
#include <memory>
#include <string>
#include <utility>

#include "client/commands/commands.h"

namespace lengthwise::client {

void AddCompare(Command root, Program& program) {
  auto names = std::make_shared<std::pair<std::string, std::string>>();
  const Command command =
      program.AddCommand(root, "compare", "Prints two experiments side by side", kServerGroup,
                         "lengthwise compare quickstart-1 quickstart-2\n"
                         "lengthwise compare table1-1 table1-2 --output csv",
                         [&program, names] {
                           return program.RunPython({"compare", names->first, names->second});
                         });
  command.AddOption("first", names->first, "Name of an experiment, or of its specification");
  command.AddOption("second", names->second, "Name of the experiment to compare it with");
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command, {"table", "json", "csv", "markdown", "latex"});
}

}  // namespace lengthwise::client
