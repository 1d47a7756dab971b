// `lengthwise retry EXPERIMENT|TRIAL`: requeues failed or cancelled trials.
#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/watching/lines.h"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

struct RetryOptions {
  std::string name;
  bool failed = false;
  bool cancelled = false;
};

// Default for one trial: both states. Default for an experiment: failed.
std::vector<v1::TrialState> StatesOf(const RetryOptions& options, bool one_trial) {
  const bool unsaid = !options.failed && !options.cancelled;
  std::vector<v1::TrialState> states;
  if (options.failed || unsaid) states.push_back(v1::FAILED);
  if (options.cancelled || (unsaid && one_trial)) states.push_back(v1::CANCELLED);
  return states;
}

std::string DescribeStates(const std::vector<v1::TrialState>& states) {
  if (states.size() > 1) return "has failed or was cancelled";
  return states[0] == v1::FAILED ? "has failed" : "was cancelled";
}

absl::StatusOr<int> Retry(Program& program, const RetryOptions& options) {
  ASSIGN_OR_RETURN(auto connection, program.Connect());
  ASSIGN_OR_RETURN(const auto found,
                   connection->Find(options.name, Connection::FindRequest::CHANGE));
  const bool one_trial = found.has_trial();
  const std::vector<v1::TrialState> states = StatesOf(options, one_trial);
  const std::string& name = one_trial ? found.trial().name() : found.experiment().name();
  v1::RetryTrialsRequest request;
  request.set_name(name);
  for (const v1::TrialState state : states) request.add_states(state);
  ASSIGN_OR_RETURN(auto response, connection->Call<v1::RetryTrialsResponse>(request));
  const int retried = response.retried_trials();
  if (retried == 0) {
    program.out() << (one_trial ? absl::StrCat("The trial ", ShortName(name), " is not one that ")
                                : absl::StrCat("No trial of ", ShortName(name), " "))
                  << DescribeStates(states) << "; nothing was queued.\n";
    const v1::TrialCounts& counts = response.experiment().trials();
    const bool failed = states[0] == v1::FAILED;
    const int others = failed ? counts.cancelled() : counts.failed();
    if (!one_trial && states.size() == 1 && others > 0) {
      program.out() << (failed ? Counted(others, "trial was cancelled", "trials were cancelled")
                               : Counted(others, "trial has failed", "trials have failed"))
                    << "; queue " << (others == 1 ? "it" : "them") << " again with\n"
                    << "  lengthwise retry " << ShortName(name)
                    << (failed ? " --cancelled" : " --failed") << program.WhereArguments() << "\n";
    }
    return kSuccess;
  }
  program.out() << "Queued "
                << (one_trial ? absl::StrCat("the trial ", ShortName(name))
                              : absl::StrCat(Counted(retried, "trial"), " of ", ShortName(name)))
                << " again: " << DescribeCounts(response.experiment().trials()) << ".\n";
  if (program.serves_alone()) {
    program.out() << (retried == 1 ? "Train it" : "Train them") << " with\n  lengthwise run "
                  << ShortName(response.experiment().name()) << program.WhereArguments() << "\n";
  }
  return kSuccess;
}

}  // namespace

void AddRetry(Command root, Program& program) {
  const auto [command, options] =
      program.AddCommand(root, "retry", "Requeues failed or cancelled trials", kServerGroup,
                         "lengthwise retry quickstart-1\n"
                         "lengthwise retry quickstart-1 --failed --cancelled\n"
                         "lengthwise retry quickstart-1/0",
                         Retry);
  command.AddOption("name", options->name, "EXPERIMENT, EXPERIMENT/TRIAL or EXPERIMENT/INDEX");
  command.AddFlag("--failed", options->failed, "Requeues failed trials (the default)");
  command.AddFlag("--cancelled", options->cancelled,
                  "Requeues cancelled trials; also the default for one trial");
  program.AddServerOrDataDirOptions(command);
}

}  // namespace lengthwise::client
