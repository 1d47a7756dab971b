// Trains an experiment on this machine with workers that the client starts, and evaluates a stored
// model again, for commands that show what this evaluation records.
#ifndef LENGTHWISE_CLIENT_COMMANDS_LOCAL_TRAINING_H_
#define LENGTHWISE_CLIENT_COMMANDS_LOCAL_TRAINING_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/commands/program.h"
#include "client/connection/connection.h"
#include "client/display/terminal.h"

namespace lengthwise::client {

// The worker options of the command line.
struct LocalWorkers {
  std::string device = "auto";
  int count = 0;  // 0: as many as are useful
  int threads = 1;
};

void AddWorkerOptions(Command command, LocalWorkers& workers);
// The options that give these workers: " --device cuda:0 --workers 2". Empty for the defaults.
std::string WorkerArguments(const LocalWorkers& workers);

// Returns the requested number. By default: on a GPU one worker, which trains many trials at once;
// on the CPU as many workers as the usable CPUs (platform/usable_cpus.h) have room for, at most one
// per trial.
int WorkerCount(const LocalWorkers& workers, size_t trials);

struct LocalTraining {
  std::string experiment;  // full name
  int workers = 1;
  LocalWorkers options;
  // Shows no progress.
  bool quiet = false;
  // False: the experiment is not to be resumed after an error.
  bool resumable = true;
};

// Starts workers dedicated to this experiment and shows its progress until it ends. Prints first
// which other experiments of the directory wait. Goes on while one worker runs. Returns the result
// of WatchExperiment; its errors say what is kept and how to resume. After Ctrl-C the workers have
// written checkpoints, `service` is stopped and the user has been told the same.
//
// `interrupts` must be older than the service, so that Ctrl-C does not end the client before its
// children. A second Ctrl-C during the stop ends all of them.
absl::StatusOr<int> TrainHere(Program& program, PrivateService& service, Connection& connection,
                              const LocalTraining& training,
                              std::optional<InterruptGuard>& interrupts);

// Watches an experiment of a server until it ends, or with --data_dir trains it here. An evaluation
// whose workers fail here is cancelled.
absl::StatusOr<int> TrainOrWatch(Program& program, Connection& connection,
                                 const v1::Experiment& experiment, const LocalWorkers& workers,
                                 std::optional<InterruptGuard>& interrupts, bool quiet = false);

// Adds the user's own input to `evaluation`: text for tasks on text, real numbers for numeric
// tasks, else tokens. The evaluation computes as few scores as possible. INVALID_ARGUMENT for other
// input.
absl::Status AddInput(const std::string& typed, const v1::TrialSpecification& trial,
                      v1::Evaluation& evaluation);

// Evaluates the trial's model without showing progress, and returns the trial of the evaluation.
absl::StatusOr<v1::Trial> EvaluateQuietly(Program& program, Connection& connection,
                                          const v1::Trial& trial, const v1::Evaluation& evaluation,
                                          const LocalWorkers& workers);

// Returns the error that the trial's log names as the reason for recording nothing.
absl::Status WhyNothing(Connection& connection, const v1::Trial& evaluated);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_LOCAL_TRAINING_H_
