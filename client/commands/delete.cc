// `lengthwise delete EXPERIMENT`, and of all that ended long ago or belong to an owner.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

struct DeleteOptions {
  std::string experiment;
  std::string owner;
  std::string older_than;
  bool yes = false;
};

// Returns "deletes sort-1: 72 trials with their models and histories, 17 MiB".
std::string Deed(const std::vector<v1::Experiment>& experiments) {
  int64_t trials = 0, bytes = 0;
  std::string deed = "deletes";
  for (const v1::Experiment& experiment : experiments) {
    trials += AllTrials(experiment.trials());
    bytes += experiment.disk_use().artifact_bytes() + experiment.disk_use().event_bytes();
    absl::StrAppend(&deed, " ", ShortName(experiment.name()));
  }
  return absl::StrCat(deed, ": ", FormatCount(trials),
                      trials == 1 ? " trial with its model and history, "
                                  : " trials with their models and histories, ",
                      FormatBytes(bytes));
}

// The experiments to delete. Of several, those with unfinished trials are left out.
absl::StatusOr<std::vector<v1::Experiment>> Chosen(Connection& connection,
                                                   const DeleteOptions& options) {
  std::vector<v1::Experiment> experiments;
  if (!options.experiment.empty()) {
    ASSIGN_OR_RETURN(experiments.emplace_back(), FindExperiment(connection, options.experiment,
                                                                Connection::FindRequest::DELETE));
  } else {
    absl::Duration age;
    if (!options.older_than.empty()) {
      ASSIGN_OR_RETURN(age, ParseTime("--older_than", options.older_than));
    }
    ASSIGN_OR_RETURN(experiments, connection.ListExperiments(/*limit=*/0, options.owner));
    std::erase_if(experiments, [age](const v1::Experiment& one) {
      return !one.has_end_time() || absl::Now() - ToTime(one.end_time()) < age;
    });
  }
  if (options.yes) return experiments;
  // The question tells their disk use, which other answers do not have.
  for (v1::Experiment& one : experiments) {
    ASSIGN_OR_RETURN(one, connection.GetExperiment(one.name()));
  }
  return experiments;
}

absl::StatusOr<int> Delete(Program& program, const DeleteOptions& options) {
  if (options.experiment.empty() == (options.owner.empty() && options.older_than.empty())) {
    return absl::InvalidArgumentError(
        "give the full name of an experiment, or choose several by --older_than and --owner; "
        "`lengthwise list` shows them");
  }
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(const auto experiments, Chosen(*connection, options));
  if (experiments.empty()) {
    program.out() << "No such experiment has ended.\n";
    return kSuccess;
  }
  if (!options.yes) {
    std::string command = "lengthwise delete";
    if (!options.experiment.empty()) {
      absl::StrAppend(&command, " ", ShortName(experiments.front().name()));
    }
    for (const auto& [option, value] : {std::pair(" --older_than ", &options.older_than),
                                        std::pair(" --owner ", &options.owner)}) {
      if (!value->empty()) absl::StrAppend(&command, option, platform::ShellWord(*value));
    }
    RETURN_IF_ERROR(program.Confirm(Deed(experiments),
                                    absl::StrCat(command, " --yes", program.WhereArguments())));
  }
  for (const v1::Experiment& experiment : experiments) {
    v1::DeleteExperimentRequest request;
    request.set_name(experiment.name());
    RETURN_IF_ERROR(connection->Call<v1::DeleteExperimentResponse>(request).status());
    program.out() << "Deleted " << ShortName(experiment.name()) << ".\n";
  }
  return kSuccess;
}

}  // namespace

void AddDelete(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "delete", "Deletes experiments with their models and histories", kServerGroup,
      "lengthwise delete quickstart-1\n"
      "lengthwise delete quickstart-1 --yes\n"
      "lengthwise delete --older_than 90d --owner sam",
      Delete);
  command.AddOption("[experiment]", options->experiment, "Full name of the experiment");
  command.AddOption("--older_than TIME", options->older_than,
                    "All experiments that ended at least this long ago, such as 90d or 12h");
  command.AddOption("--owner NAME", options->owner,
                    "All experiments of this owner that have ended");
  Program::AddYesOption(command, options->yes);
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
