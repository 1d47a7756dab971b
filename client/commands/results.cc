// `lengthwise results EXPERIMENT`: prints accuracy by length, or next to a published table.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/commands/experiment_display.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

struct ResultsOptions {
  std::string experiment;
  bool intervals = false;
  // Key of a published table, or "list".
  std::string compare;
  bool whole_table = false;
  std::string select;
};

absl::StatusOr<int> Results(Program& program, const ResultsOptions& options) {
  if (options.whole_table && options.compare.empty()) {
    return absl::InvalidArgumentError("--whole_table belongs to --compare; add it, or leave both");
  }
  if (options.compare == "list") {
    return program.RunPython({"results", "--compare", "list"}, /*asks_server=*/false);
  }
  if (options.experiment.empty()) {
    return absl::InvalidArgumentError("results needs an experiment; `lengthwise list` prints them");
  }
  const bool is_document = program.output == "markdown" || program.output == "latex";
  if (!options.compare.empty() || is_document) {
    std::vector<std::string> arguments = {"results", options.experiment};
    if (!options.compare.empty()) {
      arguments.insert(arguments.end(), {"--compare", options.compare});
    }
    if (options.whole_table) arguments.push_back("--whole_table");
    if (!options.select.empty()) arguments.push_back(absl::StrCat("--select=", options.select));
    return program.RunPython(std::move(arguments));
  }
  ASSIGN_OR_RETURN(auto connection, program.ConnectToRead());
  ASSIGN_OR_RETURN(auto experiment, FindExperiment(*connection, options.experiment));
  RETURN_IF_ERROR(
      PrintResults(program, *connection, experiment, options.intervals, options.select));
  return kSuccess;
}

}  // namespace

void AddResults(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "results", "Prints accuracy by length, or next to a paper's table", kServerGroup,
      "lengthwise results quickstart-1\n"
      "lengthwise results quickstart --data_dir ~/.local/share/lengthwise/runs\n"
      "lengthwise results quickstart-1 --intervals --output csv > accuracies.csv\n"
      "lengthwise results table1 --compare randomized_pe/table_1\n"
      "lengthwise results table1 --compare randomized_pe/table_4 --output latex > table4.tex",
      Results);
  command.AddOption("[experiment]", options->experiment,
                    "Name of the experiment, or of its specification");
  command.AddFlag("--intervals", options->intervals,
                  "Includes the evaluations during training, in json and csv");
  command.AddOption("--compare KEY", options->compare,
                    "Published table to compare with, PAPER/TABLE; \"list\" lists all tables, "
                    "\"all\" compares with each of the experiment's paper");
  command.AddFlag("--whole_table", options->whole_table,
                  "With --compare: includes tasks and encodings that were not run");
  program.AddSelectOption(command, options->select);
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command, {"table", "json", "csv", "markdown", "latex"});
}

}  // namespace lengthwise::client
