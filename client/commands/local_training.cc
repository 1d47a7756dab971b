#include "client/commands/local_training.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/experiment_display.h"
#include "client/connection/private_service.h"
#include "client/display/numbers.h"
#include "platform/flag_checks.h"
#include "platform/usable_cpus.h"
#include "proto/trial_counts.h"

namespace lengthwise::client {
namespace {

// Time for a worker to finish its step and upload its checkpoint.
constexpr absl::Duration kGrace = absl::Seconds(20);
constexpr size_t kMostWorkers = 64;
constexpr char kResume[] = " Resume or show it:";

// Returns a line about other experiments of the directory with unfinished trials; empty for none.
std::string WhatElseWaits(Connection& connection, const std::string& experiment,
                          const std::string& data_dir) {
  const auto experiments = connection.ListExperiments(0);
  if (!experiments.ok()) return "";
  std::string newest;
  int waiting = 0;
  for (const v1::Experiment& other : *experiments) {
    if (other.name() == experiment || UnendedTrials(other.trials()) == 0) continue;
    if (waiting++ == 0) newest = ShortName(other.name());
  }
  if (waiting == 0) return "";
  const std::string others = absl::StrCat(" and ", waiting - 1, " more also wait here and are");
  return absl::StrCat(newest, waiting == 1 ? " also waits here and is" : others,
                      " not trained now; resume ", waiting == 1 ? "it" : "each",
                      " afterwards: lengthwise run ", waiting == 1 ? newest : "NAME",
                      Argument("data_dir", data_dir));
}

// Returns a sentence about the progress that a stopped training keeps.
std::string WhatIsKept(Connection& connection, const std::string& experiment) {
  const auto trials = connection.ListTrials(experiment, "");
  if (!trials.ok()) return "Progress up to the last checkpoint of each trial is kept.";
  int unfinished = 0;
  int with_checkpoint = 0;
  for (const v1::Trial& trial : *trials) {
    const bool begun = trial.state() == v1::RUNNING || trial.attempt() > 0;
    if (!begun || (trial.state() != v1::QUEUED && trial.state() != v1::RUNNING)) continue;
    ++unfinished;
    if (trial.checkpoint_step() > 0) ++with_checkpoint;
  }
  if (unfinished == with_checkpoint) return "Progress up to the last checkpoint is kept.";
  const std::string without =
      Counted(unfinished - with_checkpoint, "unfinished trial has", "unfinished trials have");
  return absl::StrCat(
      with_checkpoint == 0 ? "" : "Progress up to the last checkpoint is kept, but ", without,
      " no checkpoint yet, and will start from the beginning.");
}

std::string HowToResume(const std::string& experiment, const std::string& data_dir,
                        const LocalWorkers& workers) {
  const std::string name = ShortName(experiment);
  const std::string directory = Argument("data_dir", data_dir);
  return absl::StrCat("\n  lengthwise run ", name, directory, WorkerArguments(workers),
                      "\n  lengthwise show ", name, directory);
}

}  // namespace

void AddWorkerOptions(Command command, LocalWorkers& workers) {
  command.AddOption("--device DEVICE", workers.device, "Device of the workers: auto, cpu or cuda:N")
      .Check(platform::CheckDevice, "auto, cpu or cuda:N")
      .ShowDefault();
  command
      .AddOption("--workers N", workers.count,
                 "Number of worker processes; by default one for each usable CPU (see "
                 "`lengthwise_worker --help`) divided by --threads, or one for a GPU")
      .Range(size_t{1}, kMostWorkers);
  command
      .AddOption("--threads N", workers.threads,
                 "Threads per worker on the CPU. Results do not depend on it")
      .Range(1, 256)
      .ShowDefault();
}

std::string WorkerArguments(const LocalWorkers& workers) {
  const LocalWorkers usual;
  std::string options;
  if (workers.device != usual.device) absl::StrAppend(&options, " --device ", workers.device);
  if (workers.count != usual.count) absl::StrAppend(&options, " --workers ", workers.count);
  if (workers.threads != usual.threads) absl::StrAppend(&options, " --threads ", workers.threads);
  return options;
}

int WorkerCount(const LocalWorkers& workers, size_t trials) {
  if (workers.count > 0) return workers.count;
  const bool gpu = workers.device != "cpu" &&
                   (workers.device != "auto" || std::filesystem::exists("/dev/nvidiactl"));
  if (gpu) return 1;
  const int fitting = platform::CountUsableCpus().count / workers.threads;
  return std::clamp(fitting, 1, static_cast<int>(std::clamp<size_t>(trials, 1, kMostWorkers)));
}

absl::StatusOr<int> TrainHere(Program& program, PrivateService& service, Connection& connection,
                              const LocalTraining& training,
                              std::optional<InterruptGuard>& interrupts) {
  const auto start_workers = [&] {
    absl::Status started;
    for (int i = 0; i < training.workers && started.ok(); ++i) {
      started = service.StartWorker(training.options.device, training.options.threads,
                                    training.experiment);
    }
    return started;
  };
  // With JSON or CSV the output contains only the results.
  const bool talks = program.output_is_table() && !training.quiet;
  std::ostream discarded(nullptr);
  Program silent(discarded, program.err());
  const std::string data_dir = service.data_dir();
  const std::string others = WhatElseWaits(connection, training.experiment, data_dir);
  if (talks && !others.empty()) program.out() << program.Wrapped(others) << "\n";
  const auto warnings = [&] {
    std::vector<std::string> lost = service.TakeLostWorkers();
    for (std::string& worker : lost) {
      absl::StrAppend(&worker,
                      "\nThe other workers go on, also with its trials once its lease has expired, "
                      "after 30 s");
    }
    return lost;
  };
  // Workers start after the stored history was read, so that all of their events are new.
  const absl::StatusOr<int> watched = WatchExperiment(talks ? program : silent, connection,
                                                      {.experiment = training.experiment,
                                                       .news_only = true,
                                                       .caught_up = start_workers,
                                                       .check = [&] { return service.Check(); },
                                                       .warnings = warnings});
  if (!watched.ok()) {
    // When the server dies, the connection breaks. Report the dead process, which is the cause.
    absl::Status cause = service.Check();
    cause.Update(watched.status());
    if (!HoldsExperiments(data_dir)) {
      return absl::AbortedError(absl::StrCat(cause.message(), "\n", data_dir,
                                             " is gone: it was deleted or moved while this command "
                                             "used it, and what it held with it"));
    }
    if (!training.resumable) return absl::AbortedError(cause.message());
    return absl::AbortedError(
        absl::StrCat(cause.message(), "\n", WhatIsKept(connection, training.experiment), kResume,
                     HowToResume(training.experiment, data_dir, training.options)));
  }
  if (*watched == kInterrupted) {
    program.stopped_training = true;
    if (talks) {
      program.out() << "\n"
                    << program.Wrapped(
                           "Interrupted. Stopping the workers with a last checkpoint (Ctrl-C "
                           "again: without)")
                    << std::endl;
    }
    // From here on Ctrl-C ends the client at once, and the kernel ends its children with it.
    interrupts.reset();
    service.StopWorkers(kGrace);
    // After the last checkpoints, and while the server can tell.
    if (talks) {
      const bool is_read = program.out().good();
      (is_read ? program.out() : program.err())
          << (is_read ? "" : "Stopped, because nothing reads the output any more. ")
          << program.Wrapped(WhatIsKept(connection, training.experiment) + kResume)
          << HowToResume(training.experiment, data_dir, training.options) << "\n";
    }
    service.Stop(kGrace);
  }
  return *watched;
}

absl::StatusOr<int> TrainOrWatch(Program& program, Connection& connection,
                                 const v1::Experiment& experiment, const LocalWorkers& workers,
                                 std::optional<InterruptGuard>& interrupts, bool quiet) {
  PrivateService* const service = program.private_service();
  if (service == nullptr) {
    interrupts.reset();
    std::ostream discarded(nullptr);
    Program silent(discarded, program.err());
    return WatchExperiment(program.output_is_table() && !quiet ? program : silent, connection,
                           {.experiment = experiment.name(), .news_only = true});
  }
  const int64_t trials = UnendedTrials(experiment.trials());
  const bool is_evaluation = !experiment.specification().evaluated_trial().empty();
  auto ended = TrainHere(program, *service, connection,
                         {.experiment = experiment.name(),
                          .workers = WorkerCount(workers, static_cast<size_t>(trials)),
                          .options = workers,
                          .quiet = quiet,
                          .resumable = !is_evaluation},
                         interrupts);
  if (!ended.ok() && is_evaluation) {
    // It is asked for again by the same command. Left queued, every later command would tell of it.
    v1::CancelExperimentRequest cancel;
    cancel.set_name(experiment.name());
    cancel.set_reason("its worker ended");
    connection.Call<v1::Experiment>(cancel).IgnoreError();
  }
  return ended;
}

}  // namespace lengthwise::client
