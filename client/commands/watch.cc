// `lengthwise watch EXPERIMENT`: shows an experiment live.
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/commands/experiment_display.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {

void AddWatch(Command root, Program& program) {
  struct Options {
    std::string experiment;
    int64_t from = 0;
    std::string until = "done";
  };
  auto options = std::make_shared<Options>();
  const Command command = program.AddCommand(
      root, "watch", "Shows an experiment live", kServerGroup,
      "lengthwise watch quickstart-1\n"
      "lengthwise watch quickstart-1 --output json | jq .position\n"
      "lengthwise watch quickstart-1 --until running\n"
      "lengthwise watch quickstart-1 --data_dir ~/.local/share/lengthwise/runs",
      [&program, options]() -> absl::StatusOr<int> {
        ASSIGN_OR_RETURN(auto connection, program.ConnectToRead());
        ASSIGN_OR_RETURN(auto experiment, FindExperiment(*connection, options->experiment));
        if (program.serves_alone() && UnendedTrials(experiment.trials()) > 0) {
          const std::string name = ShortName(experiment.name());
          return absl::FailedPreconditionError(absl::StrCat(
              "nothing trains ", name, " now; train and watch it with `lengthwise run ", name,
              program.WhereArguments(), "`"));
        }
        return WatchExperiment(program, *connection,
                               {.experiment = experiment.name(),
                                .from = options->from,
                                .until_running = options->until == "running",
                                .check = [&program] { return program.CheckServer(); }});
      });
  command.AddOption("experiment", options->experiment,
                    "Name of the experiment, or of its specification");
  command
      .AddOption("--from N", options->from,
                 "Position of the first event to show; default: the first")
      .NonNegative();
  command
      .AddOption("--until STATE", options->until,
                 "done: until all trials have ended; running: until one runs")
      .OneOf({"done", "running"})
      .ShowDefault();
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command, {"table", "json"});
}

}  // namespace lengthwise::client
