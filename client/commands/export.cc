// `lengthwise export NAME --format FORMAT`: writes results for other tools.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"

namespace lengthwise::client {
namespace {

struct ExportFormat {
  const char* name;
  // Contents in one line.
  const char* description;
};

// FORMATS of python/lengthwise/exports, repeated here for help and completion.
constexpr ExportFormat kFormats[] = {
    {"csv",
     "tables trials.csv, loss_curves.csv, length_accuracies.csv and, with noise, "
     "noise_accuracies.csv, described by columns.json"},
    {"json", "one document with the same data and the specifications"},
    {"tensorboard", "event files, one run per trial, for `tensorboard --logdir PATH`"},
    {"safetensors", "the newest stored model of each trial, unchanged"},
    {"npz", "NumPy arrays of each trial: losses, accuracies, attention maps, projections"},
    {"latex", "tables of an experiment, also next to published ones"},
    {"site",
     "a static web page of an experiment, with figures, logs, models, and what trains it again"},
};

absl::StatusOr<int> RunExport(Program& program, std::vector<std::string> command) {
  if (program.redraws()) command.push_back("--progress");
  return program.RunPython(program.Given(std::move(command)));
}

void AddDestination(Command command) {
  command.AddOption("-o,--out PATH",
                    "File or directory to create; default: named after NAME and the format, here");
  command.AddFlag("--force",
                  "Replaces the files of an earlier export; other files in a directory stay");
}

}  // namespace

void AddPublish(Command root, Program& program) {
  const Command command = program.AddCommand(
      root, "publish", "Writes a static web page that others can check and train again",
      kServerGroup,
      "lengthwise publish quickstart-1 -o site\n"
      "\n"
      "Any web server shows the directory. It has results, figures, differences from papers'\n"
      "protocols, logs, tables as CSV, models, and a specification of each trial, with which "
      "others\n"
      "train the same model. SHA256SUMS names all files.",
      [&program] {
        return RunExport(program, {"export", "--format=site"});
      });
  command.AddOption("name", "An experiment");
  AddDestination(command);
  program.AddServerOrDataDirOptions(command);
}

void AddExport(Command root, Program& program) {
  const Command command = program.AddCommand(
      root, "export", "Writes results or models for other tools", kServerGroup,
      "lengthwise export quickstart-1 --format csv\n"
      "lengthwise export quickstart-1 --format tensorboard -o logs/quickstart\n"
      "lengthwise export quickstart-1/0 --format safetensors -o model.safetensors",
      [&program] { return RunExport(program, {"export"}); });
  command.AddOption("name", "An experiment, or EXPERIMENT/TRIAL");
  std::vector<std::string> names;
  std::string formats;
  for (const ExportFormat& format : kFormats) {
    names.emplace_back(format.name);
    absl::StrAppend(&formats, formats.empty() ? "" : "; ", format.name, ": ", format.description);
  }
  command.AddOption("--format FORMAT", formats).Required().OneOf(names);
  AddDestination(command);
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
