// `lengthwise report EXPERIMENT -o report.html`: writes everything about an experiment to one file.
#include <string>
#include <vector>

#include "client/commands/commands.h"

namespace lengthwise::client {

void AddReport(Command root, Program& program) {
  const Command command = program.AddCommand(
      root, "report", "Writes everything about an experiment to one HTML file", kServerGroup,
      "lengthwise report quickstart-1\n"
      "lengthwise report table1 --compare randomized_pe/table_1 -o table1.html\n"
      "\n"
      "The file needs no network and no other file: tables, with published ones if the\n"
      "experiment follows a paper's protocol, figures, attention maps with a choice of layers and\n"
      "heads, failures and their reasons, and the whole specification.",
      [&program] { return program.RunPython(program.Given({"report"})); });
  command.AddOption("experiment", "Name of the experiment, or of its specification");
  command.AddOption("-o,--out FILE", "HTML file to write; default: EXPERIMENT.html here");
  command
      .AddOption<std::vector<std::string>>(
          "--compare KEY",
          "Published table to compare with, PAPER/TABLE; may be repeated; default: those "
          "with a cell that was run")
      .OneByOne();
  command.AddFlag("--open", "Then show it, with $BROWSER or xdg-open");
  program.AddSelectOption(command);
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
