// `lengthwise run SPEC`: a whole experiment on this machine, with a server and workers of its own.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/commands/local_training.h"
#include "client/commands/results_display.h"
#include "client/commands/specification_file.h"
#include "client/connection/names.h"
#include "client/embedded/private_service.h"
#include "client/terminal/interrupt.h"
#include "google/protobuf/util/message_differencer.h"

namespace lengthwise::client {
namespace {

struct RunOptions {
  std::string path;
  LocalWorkers workers;
  std::string data_dir;
  bool fresh = false;
};

// The same experiment, whatever its priority.
bool SameExperiment(const v1::ExperimentSpecification& resolved,
                    const v1::ExperimentSpecification& other) {
  auto grid = specification::Resolve(other, specification::Limits());
  if (!grid.ok()) return false;
  v1::ExperimentSpecification a = resolved;
  a.clear_priority();
  grid->specification.clear_priority();
  return google::protobuf::util::MessageDifferencer::Equals(a, grid->specification);
}

// The experiment to train: an interrupted one of the same specification, or a new one, which then
// goes before others that wait in the same directory.
absl::StatusOr<v1::Experiment> FindOrCreate(Connection& connection, const RunOptions& options,
                                            const specification::Grid& grid, bool& resumed) {
  resumed = false;
  auto experiments = connection.ListExperiments(0);
  if (!experiments.ok()) return experiments.status();
  v1::ExperimentSpecification specification = grid.specification;
  for (const v1::Experiment& experiment : *experiments) {  // newest first
    if (experiment.trials().queued() + experiment.trials().running() == 0) continue;
    if (!options.fresh && SameExperiment(grid.specification, experiment.specification())) {
      resumed = true;
      return experiment;
    }
    specification.set_priority(std::min(
        1000, std::max(specification.priority(), experiment.specification().priority() + 1)));
  }
  v1::CreateExperimentRequest request;
  *request.mutable_specification() = specification;
  request.set_owner(connection.DefaultOwner());
  auto created = connection.CreateExperiment(request);
  if (!created.ok()) return created.status();
  return created->experiment();
}

absl::StatusOr<int> Run(Program& program, const RunOptions& options) {
  auto text = ReadSpecification(options.path);
  if (!text.ok()) return text.status();
  auto grid = ResolveFile(options.path, *text);
  if (!grid.ok()) return grid.status();
  const bool talks = program.output_is_table();
  std::ostream& out = program.out();
  const Palette palette = program.palette();

  std::error_code error;
  const std::string data_dir = std::filesystem::absolute(options.data_dir, error).string();
  // From here on Ctrl-C must not end the client before its children.
  std::optional<InterruptGuard> interrupts(std::in_place);
  auto service = PrivateService::Start({.data_dir = data_dir});
  if (!service.ok()) return absl::AbortedError(service.status().message());
  Connection connection((*service)->address());
  bool resumed = false;
  auto experiment = FindOrCreate(connection, options, *grid, resumed);
  if (!experiment.ok()) return experiment.status();
  const std::string name = ShortName(experiment->name());
  const int workers = WorkerCount(options.workers, grid->trials.size());
  if (talks) {
    out << palette(Paint::kBold, name) << ": " << DescribeGrid(*grid) << ", "
        << (resumed ? "goes on where it was interrupted (--fresh starts anew)"
                    : "on a private server and ")
        << (resumed        ? ""
            : workers == 1 ? std::string("worker")
                           : absl::StrCat(workers, " workers"))
        << "\n"
        << palette(Paint::kDim, absl::StrCat("logs: ", (*service)->log_directory())) << "\n\n"
        << std::flush;
  }

  const absl::StatusOr<int> watched =
      TrainHere(program, **service, connection,
                {.experiment = experiment->name(), .workers = workers, .options = options.workers},
                interrupts);
  if (!watched.ok()) return watched.status();
  if (*watched == kInterrupted) {
    if (talks) {
      out << "What was done is kept. The same command goes on from there; this shows it:\n  "
             "lengthwise show "
          << name << " --data_dir " << data_dir << "\n";
    }
    return kInterrupted;
  }
  auto ended = connection.GetExperiment(experiment->name());
  if (!ended.ok()) return ended.status();
  if (talks) out << "\n";
  const absl::Status printed = PrintResults(program, connection, *ended, false);
  if (!printed.ok()) return printed;
  if (talks) {
    if (ended->trials().failed() > 0) {
      auto failed = connection.ListTrials(ended->name(), "state = FAILED");
      if (failed.ok()) {
        out << "\n";
        for (const v1::Trial& trial : *failed) {
          out << palette(Paint::kRed, "failed: ") << ShortName(trial.name()) << ": "
              << trial.reason() << "\n";
        }
      }
    }
    out << "\nThe results stay in " << data_dir << ". See them again with\n  lengthwise results "
        << name << " --data_dir " << data_dir << "\n";
  }
  return *watched;
}

}  // namespace

void AddRun(CLI::App& app, Program& program) {
  auto options = std::make_shared<RunOptions>();
  options->data_dir = DefaultDataDirectory();
  CLI::App* command = program.AddCommand(
      app, "run", "Trains an experiment here, with a private server and worker, and prints results",
      kEmbeddedGroup,
      "lengthwise run experiments/quickstart.yaml\n"
      "lengthwise run experiments/quickstart.yaml --device cuda:0 --data_dir /tmp/runs",
      [&program, options] { return Run(program, *options); });
  command
      ->add_option("spec", options->path,
                   "A file that ends in .yaml, .yml, .json, .textproto or .txtpb; - reads YAML or "
                   "JSON from standard input")
      ->required()
      ->type_name("");
  AddWorkerOptions(command, options->workers);
  command
      ->add_option("--data_dir", options->data_dir, "Where experiments and logs are kept")
      // Not whose home this is: manual pages are made once for everybody.
      ->default_str("~/.local/share/lengthwise/runs")
      ->type_name("DIR");
  command->add_flag("--fresh", options->fresh,
                    "Start anew, even if the same experiment was interrupted here");
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
