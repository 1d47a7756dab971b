// `lengthwise run SPEC`: a whole experiment on this machine, with a server and workers of its own.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/commands/results_display.h"
#include "client/commands/specification_file.h"
#include "client/commands/watch_display.h"
#include "client/connection/names.h"
#include "client/embedded/private_service.h"
#include "client/terminal/interrupt.h"
#include "google/protobuf/util/message_differencer.h"

namespace lengthwise::client {
namespace {

struct RunOptions {
  std::string path;
  std::string device = "auto";
  int workers = 0;
  int threads = 1;
  std::string data_dir;
  bool fresh = false;
};

// For a worker to finish its step and hand over its checkpoint.
constexpr absl::Duration kGrace = absl::Seconds(20);

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
  const char* user = std::getenv("USER");
  request.set_owner(user == nullptr ? "" : user);
  auto created = connection.CreateExperiment(request);
  if (!created.ok()) return created.status();
  return created->experiment();
}

// One worker a core where trials are trained on the CPU, but none without a trial; one where there
// is a GPU, which trains many trials at once.
int DefaultWorkers(const RunOptions& options, const specification::Grid& grid) {
  const bool gpu = options.device != "cpu" &&
                   (options.device != "auto" || std::filesystem::exists("/dev/nvidiactl"));
  if (gpu) return 1;
  const int cores = static_cast<int>(std::thread::hardware_concurrency()) / options.threads;
  return std::clamp(cores, 1, static_cast<int>(std::min<size_t>(grid.trials.size(), 64)));
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
  const int workers = options.workers > 0 ? options.workers : DefaultWorkers(options, *grid);
  for (int i = 0; i < workers; ++i) {
    const absl::Status started = (*service)->StartWorker(options.device, options.threads);
    if (!started.ok()) return started;
  }
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

  // Only the results go to the output of a program that wants JSON or CSV.
  std::ostream discarded(nullptr);
  Program silent(discarded, program.err());
  const absl::StatusOr<int> watched = WatchExperiment(
      talks ? program : silent, connection,
      {.experiment = experiment->name(), .check = [&] { return (*service)->Check(); }});
  if (watched.ok() && *watched == kInterrupted) {
    if (talks) {
      out << "\nInterrupted. Stopping the workers with a last checkpoint (Ctrl-C again: without)"
          << std::endl;
    }
    // A second Ctrl-C ends the client at once, and the kernel its children with it.
    interrupts.reset();
    (*service)->Stop(kGrace);
    if (talks) {
      out << "What was done is kept. The same command goes on from there; this shows it:\n  "
             "lengthwise show "
          << name << " --data_dir " << data_dir << "\n";
    }
    return kInterrupted;
  }
  if (!watched.ok()) {
    // The connection breaks when the server dies: the dead process is the reason, not the broken
    // connection.
    if (const absl::Status dead = (*service)->Check(); !dead.ok()) return dead;
    return absl::AbortedError(watched.status().message());
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
  command->add_option("--device", options->device, "Where to train: auto, cpu or cuda:N")
      ->capture_default_str()
      ->type_name("DEVICE");
  command
      ->add_option("--workers", options->workers,
                   "Worker processes; by default one a core, or one for a GPU")
      ->check(CLI::Range(1, 64))
      ->type_name("N");
  command
      ->add_option(
          "--threads", options->threads,
          "Threads of each worker on the CPU. Results of one number of threads are the same "
          "on every run; another number may change their last bits")
      ->check(CLI::Range(1, 256))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--data_dir", options->data_dir, "Where experiments and logs are kept")
      ->capture_default_str()
      ->type_name("DIR");
  command->add_flag("--fresh", options->fresh,
                    "Start anew, even if the same experiment was interrupted here");
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
