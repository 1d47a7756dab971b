// `lengthwise compare A B`: prints two experiments side by side.
#include "client/commands/commands.h"

namespace lengthwise::client {

void AddCompare(Command root, Program& program) {
  const Command command =
      program.AddCommand(root, "compare", "Prints two experiments side by side", kServerGroup,
                         "lengthwise compare quickstart-1 quickstart-2\n"
                         "lengthwise compare table1-1 table1-2 --output csv",
                         [&program] { return program.RunPython(program.Given({"compare"})); });
  command.AddOption("first", "Name of an experiment, or of its specification");
  command.AddOption("second", "Name of the experiment to compare it with");
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command, {"table", "json", "csv", "markdown", "latex"});
}

}  // namespace lengthwise::client
