// `lengthwise cancel EXPERIMENT|TRIAL`.
#include <memory>

#include "client/commands/commands.h"
#include "client/connection/names.h"
#include "client/watching/lines.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {

void AddCancel(Command root, Program& program) {
  struct Options {
    std::string name;
    std::string reason;
  };
  auto options = std::make_shared<Options>();
  const Command command = program.AddCommand(
      root, "cancel", "Cancels an experiment's trials that have not ended, or one trial",
      kServerGroup,
      "lengthwise cancel quickstart-1\n"
      "lengthwise cancel quickstart-1/0 --reason \"wrong learning rate\"",
      [&program, options]() -> absl::StatusOr<int> {
        ASSIGN_OR_RETURN(auto connection, program.Connect());
        ASSIGN_OR_RETURN(const auto found,
                         connection->Find(options->name, Connection::FindRequest::CHANGE));
        if (found.has_trial()) {
          ASSIGN_OR_RETURN(auto cancelled,
                           connection->CancelTrial(found.trial().name(), options->reason));
          program.out() << "Cancelled the trial " << ShortName(cancelled.name()) << ".\n";
          return kSuccess;
        }
        const v1::Experiment& experiment = found.experiment();
        if (UnendedTrials(experiment.trials()) == 0) {
          program.out() << "No trial of " << ShortName(experiment.name())
                        << " was left to cancel: " << DescribeCounts(experiment.trials()) << ".\n";
          return kSuccess;
        }
        ASSIGN_OR_RETURN(auto cancelled,
                         connection->CancelExperiment(experiment.name(), options->reason));
        program.out() << "Cancelled " << ShortName(cancelled.name()) << ": "
                      << DescribeCounts(cancelled.trials()) << ".\n";
        return kSuccess;
      });
  command.AddOption("name", options->name, "EXPERIMENT, EXPERIMENT/TRIAL or EXPERIMENT/INDEX");
  command.AddOption("--reason TEXT", options->reason, "Reason to record in the trials' histories");
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
