// `lengthwise report EXPERIMENT -o report.html`: writes everything about an experiment to one file.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"

namespace lengthwise::client {
namespace {

struct ReportOptions {
  std::string experiment;
  std::string out;
  std::vector<std::string> tables;
  std::string select;
  bool open = false;
};

absl::StatusOr<int> RunReport(Program& program, const ReportOptions& options) {
  std::vector<std::string> arguments = {"report", options.experiment};
  if (!options.out.empty()) arguments.push_back(absl::StrCat("--out=", options.out));
  for (const std::string& table : options.tables) {
    arguments.push_back(absl::StrCat("--compare=", table));
  }
  if (!options.select.empty()) arguments.push_back(absl::StrCat("--select=", options.select));
  if (options.open) arguments.emplace_back("--open");
  return program.RunPython(std::move(arguments));
}

}  // namespace

void AddReport(Command root, Program& program) {
  auto options = std::make_shared<ReportOptions>();
  const Command command = program.AddCommand(
      root, "report", "Writes everything about an experiment to one HTML file", kServerGroup,
      "lengthwise report quickstart-1\n"
      "lengthwise report table1 --compare randomized_pe/table_1 -o table1.html\n"
      "\n"
      "The file needs no network and no other file: tables, with published ones if the\n"
      "experiment follows a paper's protocol, figures, attention maps with a choice of layers and\n"
      "heads, failures and their reasons, and the whole specification.",
      [&program, options] { return RunReport(program, *options); });
  command.AddOption("experiment", options->experiment,
                    "Name of the experiment, or of its specification");
  command.AddOption("-o,--out FILE", options->out,
                    "HTML file to write; default: EXPERIMENT.html here");
  command
      .AddOption("--compare KEY", options->tables,
                 "Published table to compare with, PAPER/TABLE; may be repeated; default: those "
                 "with a cell that was run")
      .OneByOne();
  command.AddFlag("--open", options->open, "Then show it, with $BROWSER or xdg-open");
  program.AddSelectOption(command, options->select);
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
