// `lengthwise hand-over EXPERIMENT --to NAME`: gives experiments to another owner.
#include <string>
#include <vector>

#include "client/commands/commands.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

struct HandOverOptions {
  std::string name;
  std::string from;
  std::string to;
};

absl::StatusOr<int> HandOver(Program& program, const HandOverOptions& options) {
  if (options.name.empty() == options.from.empty()) {
    return absl::InvalidArgumentError(
        "give the full name of an experiment, or --owner for all of one owner; `lengthwise list` "
        "shows them");
  }
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  std::vector<v1::Experiment> experiments;
  if (options.from.empty()) {
    ASSIGN_OR_RETURN(experiments.emplace_back(),
                     FindExperiment(*connection, options.name, Connection::FindRequest::CHANGE));
  } else {
    ASSIGN_OR_RETURN(experiments, connection->ListExperiments(/*limit=*/0, options.from));
  }
  for (const v1::Experiment& experiment : experiments) {
    v1::ChangeOwnerRequest request;
    request.set_name(experiment.name());
    request.set_owner(options.to);
    ASSIGN_OR_RETURN(const auto changed, connection->Call<v1::Experiment>(request));
    program.out() << ShortName(changed.name()) << " belongs to "
                  << platform::PrintableLine(changed.owner()) << ".\n";
  }
  if (experiments.empty()) {
    program.out() << platform::PrintableLine(options.from) << " has no experiments.\n";
  }
  return kSuccess;
}

}  // namespace

void AddHandOver(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "hand-over", "Gives experiments to another owner, as an administrator", kServerGroup,
      "lengthwise hand-over quickstart-1 --to ada\n"
      "lengthwise hand-over --owner sam --to ada",
      HandOver);
  command.AddOption("[experiment]", options->name, "Name of the experiment");
  command.AddOption("--owner NAME", options->from, "All experiments of this owner");
  command.AddOption("--to NAME", options->to, "The new owner: the principal of a token").Required();
  program.AddServerOption(command);
}

}  // namespace lengthwise::client
