// `lengthwise delete EXPERIMENT`.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/commands.h"
#include "client/connection/names.h"
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

// Returns the error for a name that is not the full name of an experiment. Suggests no single one:
// a guess may be wrong, and a deletion cannot be undone.
absl::Status NotAFullName(Connection& connection, const std::string& text) {
  constexpr size_t kMostNames = 5;
  ASSIGN_OR_RETURN(const auto experiments, connection.ListExperiments(0));
  const std::string name = ShortName(text);
  std::vector<std::string> matching;
  for (const v1::Experiment& experiment : experiments) {
    const std::string full = ShortName(experiment.name());
    if (experiment.specification().name() == name || absl::StartsWith(full, name)) {
      matching.push_back(full);
    }
  }
  const std::string wrong =
      absl::StrCat("there is no experiment \"", text, "\"; `delete` needs a full name");
  if (matching.empty()) return absl::NotFoundError(wrong + ", as `lengthwise list` shows");
  const bool more = matching.size() > kMostNames;
  if (more) matching.resize(kMostNames);
  return absl::NotFoundError(absl::StrCat(wrong, ", and this one matches ",
                                          absl::StrJoin(matching, ", "), more ? ", ..." : ""));
}

absl::StatusOr<int> Delete(Program& program, const DeleteOptions& options) {
  if (NamesTrial(options.experiment)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", options.experiment,
                     "\" names a trial; single trials cannot be deleted, only whole experiments"));
  }
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  // Deletion requires the full name: no prefix and no specification's name.
  const std::string full = options.experiment.rfind("experiments/", 0) == 0
                               ? options.experiment
                               : absl::StrCat("experiments/", options.experiment);
  absl::Status status;
  if (!options.yes) {
    const auto experiment = connection->GetExperiment(full);
    status = experiment.status();
    if (status.ok()) {
      status = program.Confirm(
          Deed(*experiment),
          absl::StrCat("lengthwise delete ", ShortName(full), " --yes", program.WhereArguments()));
    }
  }
  if (status.ok()) status = connection->DeleteExperiment(full);
  if (absl::IsNotFound(status)) return NotAFullName(*connection, options.experiment);
  RETURN_IF_ERROR(status);
  program.out() << "Deleted " << ShortName(full) << ".\n";
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
