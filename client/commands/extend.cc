// `lengthwise extend EXPERIMENT --seeds 10..19`: adds seeds to an existing experiment.
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/commands/estimate.h"
#include "client/commands/experiment_display.h"
#include "client/commands/local_training.h"
#include "client/display/numbers.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

struct ExtendOptions {
  std::string experiment;
  std::string seeds;
  std::string weight_seeds;
  std::string data_seeds;
  LocalWorkers workers;
  bool watch = false;
  bool yes = false;
};

// Maximum number of trials that are added without confirmation.
constexpr size_t kMostTrials = 20;
constexpr absl::Duration kLongest = absl::Minutes(10);

using Seeds = google::protobuf::RepeatedField<uint64_t>;

void Append(const Seeds& added, Seeds& seeds) {
  absl::flat_hash_set<uint64_t> known(seeds.begin(), seeds.end());
  for (const uint64_t seed : added) {
    if (known.insert(seed).second) seeds.Add(seed);
  }
}

// Returns the trials that the server would add. Empty if this program cannot tell; the server then
// adds them or rejects the request with its reason.
specification::Grid AddedTrials(const v1::Experiment& experiment,
                                const v1::ExtendExperimentRequest& request) {
  v1::ExperimentSpecification extended = experiment.specification();
  Append(request.seeds(), *extended.mutable_seeds());
  Append(request.weight_seeds(), *extended.mutable_weight_seeds());
  Append(request.data_seeds(), *extended.mutable_data_seeds());
  auto before = specification::Resolve(experiment.specification(), specification::Limits());
  auto after = specification::Resolve(extended, specification::Limits());
  if (!before.ok() || !after.ok()) return {};
  std::set<std::string> there;
  for (const specification::GridTrial& trial : before->trials) there.insert(trial.id);
  std::erase_if(after->trials,
                [&](const specification::GridTrial& trial) { return there.contains(trial.id); });
  return *std::move(after);
}

// Prints how much work is added, and asks for confirmation if it is much.
absl::Status ConfirmExtension(Program& program, Connection& connection,
                              const v1::Experiment& experiment,
                              const v1::ExtendExperimentRequest& request,
                              const ExtendOptions& options) {
  const specification::Grid grid = AddedTrials(experiment, request);
  const size_t trials = grid.trials.size();
  if (trials == 0) return absl::OkStatus();
  const bool here = program.private_service() != nullptr;
  const TimeEstimate estimate = EstimateTime(
      connection, grid, here ? WorkerCount(options.workers, trials) : 0, experiment.name());
  const std::string name = ShortName(experiment.name());
  const bool asks = trials > kMostTrials ||
                    (estimate.time < absl::InfiniteDuration() && estimate.time > kLongest);
  if (options.yes || !asks) {
    if (program.output_is_table()) program.out() << "Estimated time: " << estimate.text << "\n";
    return absl::OkStatus();
  }
  return program.Confirm(
      absl::StrCat("adds ", Counted(static_cast<int64_t>(trials), "trial"), " to ", name,
                   "; estimated time: ", estimate.text),
      absl::StrCat("lengthwise extend ", name, Argument("seeds", options.seeds),
                   Argument("weight_seeds", options.weight_seeds),
                   Argument("data_seeds", options.data_seeds), WorkerArguments(options.workers),
                   options.watch ? " --watch" : "", program.WhereArguments(), " --yes"));
}

absl::StatusOr<int> Extend(Program& program, const ExtendOptions& options) {
  v1::ExtendExperimentRequest request;
  absl::Status status = ReadNumbers("--seeds", options.seeds, *request.mutable_seeds());
  status.Update(
      ReadNumbers("--weight_seeds", options.weight_seeds, *request.mutable_weight_seeds()));
  status.Update(ReadNumbers("--data_seeds", options.data_seeds, *request.mutable_data_seeds()));
  RETURN_IF_ERROR(status);
  if (request.seeds().empty() && request.weight_seeds().empty() && request.data_seeds().empty()) {
    return absl::InvalidArgumentError(
        "extend: got no seeds, expected new ones such as --seeds 10..19");
  }
  std::optional<InterruptGuard> interrupts(std::in_place);
  ASSIGN_OR_RETURN(auto connection, program.ConnectToTrain());
  ASSIGN_OR_RETURN(auto experiment, FindExperiment(*connection, options.experiment,
                                                   Connection::FindRequest::CHANGE));
  request.set_name(experiment.name());
  RETURN_IF_ERROR(ConfirmExtension(program, *connection, experiment, request, options));
  ASSIGN_OR_RETURN(auto extended, connection->Call<v1::ExtendExperimentResponse>(request));
  const std::string name = ShortName(experiment.name());
  if (program.output_is_table()) {
    if (extended.added_trials() == 0) {
      program.out() << name << " has all of these trials already; nothing was added\n";
    } else {
      program.out() << "Added " << Counted(extended.added_trials(), "trial") << " to " << name
                    << "\n";
    }
  } else {
    program.Write({.columns = {"name", "added_trials"},
                   .rows = {{experiment.name(), int64_t{extended.added_trials()}}}});
  }
  const v1::TrialCounts& trials = extended.experiment().trials();
  const bool wait = options.watch || program.private_service() != nullptr;
  if (!wait || UnendedTrials(trials) == 0) return kSuccess;
  auto ended =
      TrainOrWatch(program, *connection, extended.experiment(), options.workers, interrupts);
  if (!ended.ok() || *ended == kInterrupted || !program.output_is_table()) return ended;
  program.out() << "\n";
  ASSIGN_OR_RETURN(experiment, connection->GetExperiment(experiment.name()));
  RETURN_IF_ERROR(PrintResults(program, *connection, experiment, false));
  return ended;
}

}  // namespace

void AddExtend(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "extend", "Adds trials with more seeds; existing trials do not run again", kServerGroup,
      "lengthwise extend table1-1 --seeds 10..19\n"
      "lengthwise extend quickstart --seeds 1,2 --data_dir ~/.local/share/lengthwise/runs",
      Extend);
  command.AddOption("experiment", options->experiment,
                    "Name of the experiment, or of its specification");
  command.AddOption("--seeds LIST", options->seeds, "New seeds: 10..19, or 1,2,5");
  command.AddOption("--weight_seeds LIST", options->weight_seeds,
                    "New weight seeds of an experiment with weight_seeds and data_seeds");
  command.AddOption("--data_seeds LIST", options->data_seeds, "Its new seeds of the training data");
  command.AddFlag("--watch", options->watch,
                  "Waits and shows the experiment; with --data_dir it always trains here");
  Program::AddYesOption(command, options->yes);
  AddWorkerOptions(command, options->workers);
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
