// `lengthwise results EXPERIMENT`: accuracy by length.
#include <memory>

#include "client/commands/commands.h"
#include "client/commands/results_display.h"
#include "client/connection/names.h"

namespace lengthwise::client {

void AddResults(CLI::App& app, Program& program) {
  struct Options {
    std::string experiment;
    bool intervals = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = program.AddCommand(
      app, "results", "Prints accuracy by length, seen and unseen apart", kServerGroup,
      "lengthwise results quickstart-1\n"
      "lengthwise results quickstart --data_dir ~/.local/share/lengthwise/runs\n"
      "lengthwise results quickstart-1 --intervals --output csv > accuracies.csv",
      [&program, options]() -> absl::StatusOr<int> {
        auto connection = program.Connect();
        if (!connection.ok()) return connection.status();
        auto experiment = FindExperiment(**connection, options->experiment);
        if (!experiment.ok()) return experiment.status();
        const absl::Status printed =
            PrintResults(program, **connection, *experiment, options->intervals);
        if (!printed.ok()) return printed;
        return kSuccess;
      });
  command->add_option("experiment", options->experiment, "Its name, or its specification's")
      ->required()
      ->type_name("");
  command->add_flag("--intervals", options->intervals,
                    "In json and csv also the evaluations during training");
  program.AddServerOption(command);
  program.AddDataDirOption(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
