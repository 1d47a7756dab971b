// `lengthwise run SPEC`: runs an experiment on this machine, with a private server and workers.
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/commands/commands.h"
#include "client/commands/estimate.h"
#include "client/commands/experiment_display.h"
#include "client/commands/local_training.h"
#include "client/commands/specification_file.h"
#include "client/connection/private_service.h"
#include "client/display/numbers.h"
#include "client/display/terminal.h"
#include "platform/status_macros.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

struct RunOptions {
  // A file, an installed specification or the name of an experiment.
  std::string specification;
  LocalWorkers workers;
  bool fresh = false;
  bool dry_run = false;
  bool web = false;
};

// Returns true if `text` is neither a file, nor a name that only a file can have, nor an installed
// specification.
bool NamesExperiment(const std::string& text) {
  std::error_code error;
  return text != "-" && !absl::StrContains(absl::StripPrefix(text, "experiments/"), '/') &&
         !specification::FormatOfFile(text).ok() &&
         !std::filesystem::is_regular_file(text, error) && ReadySpecification(text).empty();
}

struct Found {
  v1::Experiment experiment;
  bool resumed = false;
  // A new experiment repeats this one, which has ended; empty for none.
  std::string repeated;
};

// Returns an interrupted experiment of the same specification, or a new one.
absl::StatusOr<Found> FindOrCreate(Connection& connection, const ResolvedFile& read, bool fresh) {
  v1::CreateExperimentRequest request;
  SetSpecification(read, request);
  request.set_owner(connection.DefaultOwner());
  request.set_resume(!fresh);
  ASSIGN_OR_RETURN(auto created, CreateExperiment(connection, request, read.examples.files));
  return Found{.experiment = created.experiment(),
               .resumed = created.resumed(),
               .repeated = ShortName(created.repeats())};
}

// Returns an existing experiment of the directory by name.
absl::StatusOr<Found> FindByName(Connection& connection, const std::string& name,
                                 const std::string& data_dir) {
  auto experiment = FindExperiment(connection, name);
  if (!experiment.ok()) {
    return absl::NotFoundError(
        absl::StrCat(experiment.status().message(), "; ", data_dir,
                     " is asked for it, since there is no file of that name here"));
  }
  return Found{.experiment = *std::move(experiment), .resumed = true};
}

std::string Headline(const Found& found, int workers) {
  const int64_t all = AllTrials(found.experiment.trials());
  const int64_t left = UnendedTrials(found.experiment.trials());
  const std::string trials = Counted(all, "trial");
  if (!found.resumed) {
    return absl::StrCat(trials, ", on a private server and ",
                        workers == 1 ? "worker" : absl::StrCat(workers, " workers"));
  }
  if (left == 0) return absl::StrCat(trials, ", all of which have ended");
  const std::string ended =
      left == all ? "" : absl::StrCat(", ", FormatCount(all - left), " of them ended");
  return absl::StrCat(trials, ended,
                      ", resumes after its interruption (--fresh starts a new experiment)");
}

absl::StatusOr<int> DryRun(Program& program, const RunOptions& options, const ResolvedFile& read) {
  if (program.output_is_table()) {
    program.out() << read.grid.specification.name() << ": " << DescribeGrid(read.grid)
                  << "; nothing is trained\n"
                  << std::flush;
  }
  ASSIGN_OR_RETURN(const TimeEstimate estimate, MeasureTime(program, read, options.workers));
  PrintDryRun(program, read.grid, estimate);
  return kSuccess;
}

absl::StatusOr<int> Run(Program& program, const RunOptions& options) {
  if (program.data_dir.empty()) {
    ASSIGN_OR_RETURN(const rpc::Settings settings, program.Settings());
    program.data_dir = settings.Value("runs_dir");
  }
  std::error_code error;
  program.data_dir = std::filesystem::absolute(program.data_dir, error).string();
  const std::string& data_dir = program.data_dir;
  const bool named = NamesExperiment(options.specification);
  // A private server would create a database and report that it is empty.
  if (named && !HoldsExperiments(data_dir)) {
    return absl::NotFoundError(absl::StrCat("\"", options.specification,
                                            "\" is neither a file nor an installed specification, "
                                            "and ",
                                            data_dir, " has no experiments"));
  }
  ResolvedFile read;
  if (named && (options.fresh || options.dry_run)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.fresh ? "--fresh" : "--dry_run",
                     " needs the file of a specification, not the name of an experiment"));
  }
  if (!named) {
    ASSIGN_OR_RETURN(read, ResolveFile(options.specification));
    for (const std::string& warning : read.examples.warnings) {
      program.err() << "warning: " << warning << "\n";
    }
  }
  program.EndWithInput();
  if (options.dry_run) return DryRun(program, options, read);
  const bool talks = program.output_is_table();
  std::ostream& out = program.out();
  const Palette palette = program.palette();

  // From here on, Ctrl-C must not end the client before its children.
  std::optional<InterruptGuard> interrupts(std::in_place);
  ASSIGN_OR_RETURN(auto service,
                   PrivateService::Open({.data_dir = data_dir, .release_leases = true}),
                   absl::AbortedError(_.message()));
  Connection connection(service->address());
  ASSIGN_OR_RETURN(const auto found, named ? FindByName(connection, options.specification, data_dir)
                                           : FindOrCreate(connection, read, options.fresh));
  const v1::Experiment& experiment = found.experiment;
  const std::string name = ShortName(experiment.name());
  const int64_t left = UnendedTrials(experiment.trials());
  const int workers = left == 0 ? 0 : WorkerCount(options.workers, static_cast<size_t>(left));
  if (!found.repeated.empty()) {
    program.err() << "warning: " << found.repeated << " has trained the same specification, and "
                  << name << " trains it again; `lengthwise run " << found.repeated
                  << program.WhereArguments() << "` shows the results of the first\n"
                  << std::flush;
  }
  if (program.output == kEvents) {
    WriteJsonLine({"experiment", "data_dir"}, {experiment.name(), data_dir}, out);
    out << std::flush;
  }
  if (talks) {
    out << palette(Paint::kBold, name) << ": " << Headline(found, workers) << "\n"
        << palette(Paint::kDim, absl::StrCat("logs: ", service->log_directory())) << "\n\n"
        << std::flush;
  }

  std::unique_ptr<platform::ChildProcess> page;
  if (options.web) {
    ASSIGN_OR_RETURN(page, StartWeb(program, service->address(), name));
  }
  const absl::StatusOr<int> watched =
      TrainHere(program, *service, connection,
                {.experiment = experiment.name(), .workers = workers, .options = options.workers},
                interrupts);
  if (!watched.ok() || *watched == kInterrupted || program.output == kEvents) return watched;
  ASSIGN_OR_RETURN(auto ended, connection.GetExperiment(experiment.name()));
  if (talks) out << "\n";
  RETURN_IF_ERROR(PrintResults(program, connection, ended, false));
  if (talks) {
    if (ended.trials().failed() > 0) {
      auto failed = connection.ListTrials(ended.name(), "state = FAILED");
      if (failed.ok()) {
        out << "\n";
        for (const v1::Trial& trial : *failed) {
          out << palette(Paint::kRed, "failed: ") << ShortName(trial.name()) << ": "
              << trial.reason() << "\n";
        }
      }
    }
    out << "\n"
        << program.Wrapped(absl::StrCat("The results stay in ", data_dir, ". Show them again with"))
        << "\n  lengthwise results " << name
        << (program.DirectoryReadByDefault() == data_dir ? "" : program.WhereArguments()) << "\n";
  }
  return *watched;
}

}  // namespace

void AddRun(Command root, Program& program) {
  const auto [command, options] = program.AddCommand(
      root, "run", "Trains an experiment on this machine and prints its results", kEmbeddedGroup,
      "lengthwise run experiments/quickstart.yaml\n"
      "lengthwise run experiments/quickstart.yaml --device cuda:0 --data_dir /tmp/runs\n"
      "lengthwise run quickstart-1    # resumes an interrupted experiment",
      Run);
  command.AddOption("spec", options->specification,
                    "A file that ends in .yaml, .yml, .json, .textproto or .txtpb; - reads YAML or "
                    "JSON from standard input; an installed specification (quickstart); or the "
                    "name of an experiment in the directory that was interrupted");
  AddWorkerOptions(command, options->workers);
  command
      // Not the user's home, because manual pages are generated once for all users.
      .AddOption("--data_dir DIR", program.data_dir,
                 "Directory for experiments and logs; default $LENGTHWISE_RUNS_DIR or "
                 "~/.local/share/lengthwise/runs")
      .NotEmpty();
  command.AddFlag("--fresh", options->fresh,
                  "Starts a new experiment, even if the same one was interrupted here");
  command.AddFlag("--dry_run", options->dry_run,
                  "Shows trials, steps and the time by some measured steps of each kind of trial, "
                  "and keeps nothing");
  command.AddFlag("--web", options->web,
                  "Shows the run in a browser while it lasts: prints an address with a token");
  program.AddUntilEofOption(command);
  program.AddOutputOption(command, {"table", "json", "csv", kEvents});
}

}  // namespace lengthwise::client
