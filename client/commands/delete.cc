// `lengthwise delete EXPERIMENT`.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

struct DeleteOptions {
  std::string experiment;
  bool yes = false;
};

// Returns "deletes sort-1: 72 trials with their models and histories, 17 MiB".
std::string Deed(const v1::Experiment& experiment) {
  const int64_t trials = AllTrials(experiment.trials());
  const v1::DiskUse& use = experiment.disk_use();
  return absl::StrCat("deletes ", ShortName(experiment.name()), ": ", FormatCount(trials),
                      trials == 1 ? " trial with its model and history, "
                                  : " trials with their models and histories, ",
                      FormatBytes(use.artifact_bytes() + use.event_bytes()));
}

absl::StatusOr<int> Delete(Program& program, const DeleteOptions& options) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(const auto experiment, FindExperiment(*connection, options.experiment,
                                                         Connection::FindRequest::DELETE));
  const std::string name = ShortName(experiment.name());
  if (!options.yes) {
    RETURN_IF_ERROR(program.Confirm(
        Deed(experiment),
        absl::StrCat("lengthwise delete ", name, " --yes", program.WhereArguments())));
  }
  RETURN_IF_ERROR(connection->DeleteExperiment(experiment.name()));
  program.out() << "Deleted " << name << ".\n";
  return kSuccess;
}

}  // namespace

void AddDelete(Command root, Program& program) {
  auto options = std::make_shared<DeleteOptions>();
  const Command command = program.AddCommand(
      root, "delete", "Deletes an experiment with its models and histories", kServerGroup,
      "lengthwise delete quickstart-1\n"
      "lengthwise delete quickstart-1 --yes",
      [&program, options] { return Delete(program, *options); });
  command.AddOption("experiment", options->experiment, "Full name of the experiment");
  Program::AddYesOption(command, options->yes);
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
