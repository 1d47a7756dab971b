// `lengthwise cancel EXPERIMENT|TRIAL` and `lengthwise cancel --owner NAME`.
#include <string>
#include <vector>

#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/watching/lines.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

struct CancelOptions {
  std::string name;
  std::string owner;
  std::string reason;
  bool yes = false;
};

absl::Status CancelExperiment(Program& program, Connection& connection,
                              const v1::Experiment& experiment, const std::string& reason) {
  v1::CancelExperimentRequest request;
  request.set_name(experiment.name());
  request.set_reason(reason);
  ASSIGN_OR_RETURN(const auto cancelled, connection.Call<v1::Experiment>(request));
  program.out() << "Cancelled " << ShortName(cancelled.name()) << ": "
                << DescribeCounts(cancelled.trials()) << ".\n";
  return absl::OkStatus();
}

// Cancels all experiments of an owner that have not ended.
absl::StatusOr<int> CancelOwners(Program& program, Connection& connection,
                                 const CancelOptions& options) {
  ASSIGN_OR_RETURN(std::vector<v1::Experiment> experiments,
                   connection.ListExperiments(/*limit=*/0, options.owner));
  int64_t trials = 0;
  std::erase_if(experiments, [&](const v1::Experiment& experiment) {
    trials += UnendedTrials(experiment.trials());
    return UnendedTrials(experiment.trials()) == 0;
  });
  if (experiments.empty()) {
    program.out() << "No trial of " << platform::PrintableLine(options.owner)
                  << " was left to cancel.\n";
    return kSuccess;
  }
  std::string deed = absl::StrCat("cancels ", FormatCount(trials),
                                  trials == 1 ? " trial" : " trials", " of ", options.owner, " in");
  for (const v1::Experiment& experiment : experiments) {
    absl::StrAppend(&deed, " ", ShortName(experiment.name()));
  }
  if (!options.yes) {
    RETURN_IF_ERROR(program.Confirm(
        deed, absl::StrCat("lengthwise cancel --owner ", platform::ShellWord(options.owner),
                           " --yes", program.WhereArguments())));
  }
  for (const v1::Experiment& experiment : experiments) {
    RETURN_IF_ERROR(CancelExperiment(program, connection, experiment, options.reason));
  }
  return kSuccess;
}

absl::StatusOr<int> Cancel(Program& program, const CancelOptions& options) {
  if (options.name.empty() == options.owner.empty()) {
    return absl::InvalidArgumentError(
        "give the name of an experiment or a trial, or --owner for all of one owner; `lengthwise "
        "list` shows them");
  }
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  if (!options.owner.empty()) return CancelOwners(program, *connection, options);
  ASSIGN_OR_RETURN(const auto found,
                   connection->Find(options.name, Connection::FindRequest::CHANGE));
  if (found.has_trial()) {
    v1::CancelTrialRequest request;
    request.set_name(found.trial().name());
    request.set_reason(options.reason);
    ASSIGN_OR_RETURN(auto cancelled, connection->Call<v1::Trial>(request));
    program.out() << "Cancelled the trial " << ShortName(cancelled.name()) << ".\n";
    return kSuccess;
  }
  const v1::Experiment& experiment = found.experiment();
  if (UnendedTrials(experiment.trials()) == 0) {
    program.out() << "No trial of " << ShortName(experiment.name())
                  << " was left to cancel: " << DescribeCounts(experiment.trials()) << ".\n";
    return kSuccess;
  }
  RETURN_IF_ERROR(CancelExperiment(program, *connection, experiment, options.reason));
  return kSuccess;
}

}  // namespace

void AddCancel(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "cancel",
      "Cancels the trials that have not ended, of an experiment or an owner, or one trial",
      kServerGroup,
      "lengthwise cancel quickstart-1\n"
      "lengthwise cancel quickstart-1/0 --reason \"wrong learning rate\"\n"
      "lengthwise cancel --owner sam",
      Cancel);
  command.AddOption("[name]", options->name, "EXPERIMENT, EXPERIMENT/TRIAL or EXPERIMENT/INDEX");
  command.AddOption("--owner NAME", options->owner, "All experiments of this owner");
  command.AddOption("--reason TEXT", options->reason, "Reason to record in the trials' histories");
  Program::AddYesOption(command, options->yes);
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
