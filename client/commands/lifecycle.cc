// `lengthwise cancel`, `retry`, `delete` and `hand-over`: what happens to experiments and trials
// after their submission.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/display/numbers.h"
#include "client/watching/lines.h"
#include "platform/printable_text.h"
#include "platform/status_macros.h"
#include "proto/timestamps.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

// The experiment of this name or, if it is empty, all of an owner.
absl::StatusOr<std::vector<v1::Experiment>> Named(Connection& connection, const std::string& name,
                                                  const std::string& owner,
                                                  Connection::FindRequest::Use use) {
  if (name.empty()) return connection.ListExperiments(/*limit=*/0, owner);
  ASSIGN_OR_RETURN(const auto found, FindExperiment(connection, name, use));
  return std::vector<v1::Experiment>{found};
}

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
  std::string deed =
      absl::StrCat("cancels ", Counted(trials, "trial"), " of ", options.owner, " in");
  for (const v1::Experiment& experiment : experiments) {
    absl::StrAppend(&deed, " ", ShortName(experiment.name()));
  }
  if (!options.yes) {
    RETURN_IF_ERROR(
        program.Confirm(deed, absl::StrCat("lengthwise cancel", Argument("owner", options.owner),
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
  return absl::StrCat(
      deed, ": ",
      Counted(trials, "trial with its model and history", "trials with their models and histories"),
      ", ", FormatBytes(bytes));
}

// The experiments to delete. Of several, those with unfinished trials are left out.
absl::StatusOr<std::vector<v1::Experiment>> Chosen(Connection& connection,
                                                   const DeleteOptions& options) {
  absl::Duration age;
  if (!options.older_than.empty()) {
    ASSIGN_OR_RETURN(age, ParseTime("--older_than", options.older_than));
  }
  ASSIGN_OR_RETURN(auto experiments, Named(connection, options.experiment, options.owner,
                                           Connection::FindRequest::DELETE));
  if (options.experiment.empty()) {
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
    const std::string name =
        options.experiment.empty() ? "" : " " + ShortName(experiments.front().name());
    RETURN_IF_ERROR(program.Confirm(
        Deed(experiments),
        absl::StrCat("lengthwise delete", name, Argument("older_than", options.older_than),
                     Argument("owner", options.owner), " --yes", program.WhereArguments())));
  }
  for (const v1::Experiment& experiment : experiments) {
    v1::DeleteExperimentRequest request;
    request.set_name(experiment.name());
    RETURN_IF_ERROR(connection->Call<v1::DeleteExperimentResponse>(request).status());
    program.out() << "Deleted " << ShortName(experiment.name()) << ".\n";
  }
  return kSuccess;
}

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
  ASSIGN_OR_RETURN(const auto experiments,
                   Named(*connection, options.name, options.from, Connection::FindRequest::CHANGE));
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
