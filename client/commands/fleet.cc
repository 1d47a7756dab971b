// `lengthwise workers up` and `down`: starts and drains workers on a cluster.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/commands/commands.h"
#include "client/connection/private_service.h"
#include "client/display/terminal.h"
#include "client/fleet/fleet_plan.h"
#include "client/fleet/slurm.h"
#include "platform/flag_checks.h"
#include "platform/status_macros.h"
#include "platform/user_directories.h"
#include "rpc/address.h"

namespace lengthwise::client {
namespace {

struct FleetOptions {
  bool slurm = false;
  std::string job_name = "lengthwise-worker";
  std::string log_dir;
  // Options of `up`.
  FleetPlanner::Options plan;
  int32_t pack_size = 0;  // 0: depends on the sbatch arguments
  std::string experiment;
  std::string idle = "60s";
  absl::Duration interval = absl::Seconds(3);
  std::string worker_program;
  std::string worker_token_file;
  bool once = false;
  std::vector<std::string> sbatch_arguments;
  // Options of `down`.
  bool no_wait = false;
};

// In the home directory, which nodes usually share.
std::string DefaultLogDirectory() {
  return platform::StateDirectory().value_or("./.local/state/lengthwise") + "/workers";
}

bool AsksForGpu(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return absl::StrContains(argument, "gpu") || absl::StartsWith(argument, "-G");
  });
}

absl::Status CheckCluster(const FleetOptions& options) {
  if (options.slurm) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "no cluster given: pass --slurm (Kubernetes needs no command: deploy/kubernetes)");
}

// Sleeps for `duration`, or until interrupted.
void Sleep(absl::Duration duration, const InterruptGuard& interrupts) {
  const absl::Time end = absl::Now() + duration;
  while (interrupts.count() == 0 && absl::Now() < end) {
    absl::SleepFor(std::min(end - absl::Now(), absl::Milliseconds(100)));
  }
}

class SlurmFleet {
 public:
  SlurmFleet(Program& program, Connection& connection, const FleetOptions& options, SlurmJob job)
      : program_(program),
        connection_(connection),
        options_(options),
        slurm_(options.job_name, options.log_dir),
        planner_(options.plan),
        job_(std::move(job)) {}

  // Checks the server and the cluster once and submits the missing jobs.
  absl::Status Round() {
    v1::GetWantedWorkersRequest request;
    request.set_max_pack_size(job_.max_pack_size);
    request.set_experiment(job_.experiment);
    ASSIGN_OR_RETURN(const v1::GetWantedWorkersResponse wanted,
                     connection_.Call<v1::GetWantedWorkersResponse>(request));
    if (wanted.runnable_packs() <= wanted.idle_workers()) {
      // No need to ask the cluster. Idle workers exit by themselves.
      Say(Describe(wanted));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::vector<FleetJob> jobs, slurm_.ListJobs());
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers,
                     connection_.Call<v1::ListWorkersResponse>(v1::ListWorkersRequest()));
    FleetView view{.jobs = std::move(jobs),
                   .runnable_packs = wanted.runnable_packs(),
                   .idle_workers = wanted.idle_workers()};
    for (const v1::Worker& worker : workers.workers()) {
      const auto job = JobOfWorker(worker.worker_id());
      if (!job.has_value()) continue;
      view.registered.insert(*job);
      if (worker.alive()) view.alive.insert(*job);
    }
    Submit(wanted, planner_.Next(view, absl::Now()));
    return absl::OkStatus();
  }

  // Prints `text` with the time, unless it repeats the last line.
  void Say(const std::string& text) {
    if (text == said_) return;
    said_ = text;
    program_.out() << absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()) << "  "
                   << text << std::endl;
  }

 private:
  static std::string Describe(const v1::GetWantedWorkersResponse& wanted) {
    return absl::StrCat(wanted.runnable_packs(),
                        wanted.runnable_packs() == 1 ? " pack waits; " : " packs wait; ",
                        wanted.busy_workers(), " busy, ", wanted.idle_workers(), " idle workers");
  }

  void Submit(const v1::GetWantedWorkersResponse& wanted, const FleetPlanner::Plan& plan) {
    std::string text = absl::StrCat(Describe(wanted), "; ", plan.running, " running, ",
                                    plan.pending, " pending jobs");
    const std::string script = JobScript(job_);
    absl::Status refusal;
    if (plan.submit > 0) refusal = slurm_.Check(script, options_.sbatch_arguments);
    std::vector<int64_t> submitted;
    while (refusal.ok() && static_cast<int64_t>(submitted.size()) < plan.submit) {
      const auto job = slurm_.Submit(script, options_.sbatch_arguments);
      if (job.ok()) {
        submitted.push_back(*job);
        planner_.Submitted(*job);
      }
      refusal = job.status();
    }
    if (!refusal.ok()) {
      planner_.Refused(refusal.message(), absl::Now());
      absl::StrAppend(&text, "; not submitted: ", refusal.message());
    }
    if (!submitted.empty()) absl::StrAppend(&text, "; submitted ", absl::StrJoin(submitted, ", "));
    if (!plan.held_back.empty()) absl::StrAppend(&text, "; nothing submitted: ", plan.held_back);
    if (plan.failed_job > 0) {
      const std::string last = slurm_.LastLine(plan.failed_job);
      absl::StrAppend(&text, last.empty() ? "; it wrote nothing to " : ": \"", last,
                      last.empty() ? options_.log_dir : "\"", "; tries again after ",
                      absl::FormatDuration(options_.plan.pause));
    }
    Say(text);
  }

  Program& program_;
  Connection& connection_;
  const FleetOptions& options_;
  const Slurm slurm_;
  FleetPlanner planner_;
  const SlurmJob job_;
  std::string said_;
};

// A job's number tells its worker from others, and the tasks of an array share one.
absl::Status CheckIsNoArray(const std::vector<std::string>& arguments) {
  const bool is_array =
      getenv("SBATCH_ARRAY_INX") != nullptr ||
      std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
        // sbatch accepts abbreviations.
        return absl::StartsWith(argument, "--ar") || absl::StartsWith(argument, "-a");
      });
  if (!is_array) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the arguments of sbatch (or $SBATCH_ARRAY_INX) ask for an array of jobs; leave --array out: "
      "`workers up` submits a job for each worker, at most --max at a time");
}

absl::StatusOr<int> Up(Program& program, const FleetOptions& options) {
  RETURN_IF_ERROR(CheckCluster(options));
  RETURN_IF_ERROR(CheckIsNoArray(options.sbatch_arguments));
  ASSIGN_OR_RETURN(const auto connection, program.Connect());
  if (rpc::IsLoopback(connection->address())) {
    program.err() << "lengthwise: warning: jobs on other machines cannot reach "
                  << connection->address()
                  << "; pass --server HOST:PORT with the name of the server's machine\n";
  }
  SlurmJob job{.worker_program = options.worker_program,
               .channel = connection->channel_options(),
               .max_pack_size = options.pack_size,
               .idle = options.idle};
  if (job.worker_program.empty()) {
    ASSIGN_OR_RETURN(const std::string found,
                     FindProgram("lengthwise_worker", "worker", "LENGTHWISE_WORKER_BINARY"));
    job.worker_program = std::filesystem::absolute(found).string();
  }
  if (job.max_pack_size == 0) job.max_pack_size = AsksForGpu(options.sbatch_arguments) ? 30 : 1;
  if (!options.experiment.empty()) {
    ASSIGN_OR_RETURN(const v1::Experiment experiment,
                     FindExperiment(*connection, options.experiment));
    job.experiment = experiment.name();
  }
  // Paths must be absolute, because jobs do not start in this directory.
  for (std::string* path : {&job.channel.token_file, &job.channel.tls_ca,
                            &job.channel.tls_certificate, &job.channel.tls_key}) {
    if (!path->empty() && *path != "system") *path = std::filesystem::absolute(*path).string();
  }
  if (!options.worker_token_file.empty()) {
    job.channel.token_file = std::filesystem::absolute(options.worker_token_file).string();
  }
  SlurmFleet fleet(program, *connection, options, std::move(job));
  const InterruptGuard interrupts;
  // An error in the first round ends the program. Later errors may be temporary.
  RETURN_IF_ERROR(fleet.Round());
  while (!options.once) {
    Sleep(options.interval, interrupts);
    if (interrupts.count() > 0) break;
    const absl::Status status = fleet.Round();
    if (!status.ok()) fleet.Say(std::string(status.message()));
  }
  if (!options.once) {
    program.out() << "Stopped. Jobs continue until their workers are idle for " << options.idle
                  << "; `lengthwise workers down --slurm` drains them now.\n";
  }
  return kSuccess;
}

absl::StatusOr<int> Down(Program& program, const FleetOptions& options) {
  RETURN_IF_ERROR(CheckCluster(options));
  const Slurm slurm(options.job_name, options.log_dir);
  const InterruptGuard interrupts;
  RETURN_IF_ERROR(slurm.Drain());
  int64_t before = -1, looks = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<FleetJob> jobs, slurm.ListJobs());
    const int64_t left = std::count_if(jobs.begin(), jobs.end(), [](const FleetJob& job) {
      return job.state == FleetJob::State::kPending || job.state == FleetJob::State::kRunning;
    });
    if (left != before) {
      program.out() << (left == 0   ? "No job is left."
                        : left == 1 ? "1 job stores its checkpoints."
                                    : absl::StrCat(left, " jobs store their checkpoints."))
                    << std::endl;
    }
    if (left == 0 || options.no_wait) return kSuccess;
    before = left;
    Sleep(absl::Seconds(1), interrupts);
    if (interrupts.count() > 0) return kInterrupted;
    // A job that was starting had no step yet to receive the first signal.
    if (++looks % 10 == 0) slurm.Drain().IgnoreError();
  }
}

}  // namespace

void AddFleetCommands(Command workers, Program& program) {
  const auto options = std::make_shared<FleetOptions>();
  options->log_dir = DefaultLogDirectory();
  const auto add_common = [&options](Command command) {
    command.AddFlag("--slurm", options->slurm, "Uses the Slurm cluster of this login node");
    command.AddOption("--job_name NAME", options->job_name,
                      "Name of the jobs, which identifies them later; default lengthwise-worker");
  };
  const Command up = program.AddCommand(
      workers, "up", "Starts workers on a cluster while packs wait, until interrupted",
      kNestedGroup,
      "lengthwise workers up --slurm --max 8 -- --partition=gpu --gres=gpu:1 --time=12:00:00\n"
      "lengthwise workers up --slurm --once -- --cpus-per-task=8    # one check, for cron",
      [&program, options] { return Up(program, *options); });
  add_common(up);
  up.AddOption("--max N", options->plan.max_jobs,
               "Maximum number of running and pending jobs; default 10")
      .Positive();
  up.AddOption("--backlog N", options->plan.backlog, "Maximum number of pending jobs; default 4")
      .Positive();
  up.AddOption(
        "--pack_size N", options->pack_size,
        "Trials that each worker trains at once; default 30 if SBATCH_ARGS request a GPU, else 1")
      .Positive();
  up.AddOption("--experiment NAME", options->experiment,
               "Experiment that the workers are dedicated to; default: all");
  up.AddOption("--idle TIME", options->idle,
               "A worker exits after this long without a pack; default 60s")
      .Check(platform::CheckDuration);
  up.AddOption("--interval TIME", options->interval, "Polling interval; default 3s")
      .Check(platform::CheckDuration);
  up.AddOption("--worker PATH", options->worker_program,
               "Path of lengthwise_worker on the nodes; default: the one next to this program");
  up.AddOption("--worker_token_file PATH", options->worker_token_file,
               "File with the workers' token on the nodes; default: --token_file");
  up.AddOption("--log_dir DIR", options->log_dir,
               "Directory for the jobs' logs, which the nodes must reach; default "
               "~/.local/state/lengthwise/workers");
  up.AddFlag("--once", options->once, "Checks once, submits the missing jobs and exits");
  up.AddOption("[sbatch_args]", options->sbatch_arguments,
               "Arguments of sbatch after --, such as --time, --partition, --gres");
  program.AddServerOption(up);

  const Command down = program.AddCommand(
      workers, "down", "Drains the workers that `up` started, and cancels pending jobs",
      kNestedGroup, "lengthwise workers down --slurm",
      [&program, options] { return Down(program, *options); });
  add_common(down);
  down.AddFlag("--no_wait", options->no_wait, "Exits before the workers have stored checkpoints");
}

}  // namespace lengthwise::client
