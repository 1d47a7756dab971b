// `lengthwise extend EXPERIMENT --seeds 10..19`: more seeds for an experiment that is there.
#include <memory>

#include "client/commands/commands.h"
#include "client/commands/local_training.h"
#include "client/commands/number_list.h"
#include "client/commands/results_display.h"
#include "client/connection/names.h"
#include "client/rendering/numbers.h"

namespace lengthwise::client {
namespace {

struct ExtendOptions {
  std::string experiment;
  std::string seeds;
  std::string weight_seeds;
  std::string data_seeds;
  LocalWorkers workers;
  bool watch = false;
};

absl::StatusOr<int> Extend(Program& program, const ExtendOptions& options) {
  v1::ExtendExperimentRequest request;
  absl::Status status = ReadNumbers("--seeds", options.seeds, *request.mutable_seeds());
  status.Update(
      ReadNumbers("--weight_seeds", options.weight_seeds, *request.mutable_weight_seeds()));
  status.Update(ReadNumbers("--data_seeds", options.data_seeds, *request.mutable_data_seeds()));
  if (!status.ok()) return status;
  if (request.seeds().empty() && request.weight_seeds().empty() && request.data_seeds().empty()) {
    return absl::InvalidArgumentError("extend needs new seeds, such as --seeds 10..19");
  }
  std::optional<InterruptGuard> interrupts(std::in_place);
  auto connection = program.Connect();
  if (!connection.ok()) return connection.status();
  auto experiment = FindExperiment(**connection, options.experiment);
  if (!experiment.ok()) return experiment.status();
  request.set_name(experiment->name());
  auto extended = (*connection)->ExtendExperiment(request);
  if (!extended.ok()) return extended.status();
  const std::string name = ShortName(experiment->name());
  if (program.output_is_table()) {
    if (extended->added_trials() == 0) {
      program.out() << name << " has all of these trials already; nothing was added\n";
    } else {
      program.out() << "Added " << FormatCount(extended->added_trials())
                    << (extended->added_trials() == 1 ? " trial to " : " trials to ") << name
                    << "\n";
    }
  } else {
    program.Write({.columns = {"name", "added_trials"},
                   .rows = {{experiment->name(), int64_t{extended->added_trials()}}}});
  }
  const v1::TrialCounts& trials = extended->experiment().trials();
  const bool wait = options.watch || program.private_service() != nullptr;
  if (!wait || trials.queued() + trials.running() == 0) return kSuccess;
  auto ended =
      TrainOrWatch(program, **connection, extended->experiment(), options.workers, interrupts);
  if (!ended.ok() || *ended == kInterrupted || !program.output_is_table()) return ended;
  program.out() << "\n";
  experiment = (*connection)->GetExperiment(experiment->name());
  if (!experiment.ok()) return experiment.status();
  status = PrintResults(program, **connection, *experiment, false);
  if (!status.ok()) return status;
  return ended;
}

}  // namespace

void AddExtend(CLI::App& app, Program& program) {
  auto options = std::make_shared<ExtendOptions>();
  CLI::App* command = program.AddCommand(
      app, "extend", "Adds trials with more seeds; those that are there do not run again",
      kServerGroup,
      "lengthwise extend table1-1 --seeds 10..19\n"
      "lengthwise extend quickstart --seeds 1,2 --data_dir ~/.local/share/lengthwise/runs",
      [&program, options] { return Extend(program, *options); });
  command->add_option("experiment", options->experiment, "Its name, or its specification's")
      ->required()
      ->type_name("");
  command->add_option("--seeds", options->seeds, "New seeds: 10..19, or 1,2,5")->type_name("LIST");
  command
      ->add_option("--weight_seeds", options->weight_seeds,
                   "The same for an experiment with weight_seeds and data_seeds")
      ->type_name("LIST");
  command->add_option("--data_seeds", options->data_seeds, "The seeds of its training data")
      ->type_name("LIST");
  command->add_flag("--watch", options->watch,
                    "Wait and show it; with --data_dir it is trained here in any case");
  AddWorkerOptions(command, options->workers);
  program.AddServerOption(command);
  program.AddDataDirOption(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
