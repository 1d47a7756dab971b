// Training on this machine, with workers of the client's own.
#ifndef LENGTHWISE_CLIENT_COMMANDS_LOCAL_TRAINING_H_
#define LENGTHWISE_CLIENT_COMMANDS_LOCAL_TRAINING_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/commands/program.h"
#include "client/display/interrupt.h"

namespace lengthwise::client {

// What the command line says of the workers.
struct LocalWorkers {
  std::string device = "auto";
  int count = 0;  // 0: as many as are useful
  int threads = 1;
};

void AddWorkerOptions(CLI::App* command, LocalWorkers& workers);

// The number that was asked for, or: on the CPU as many workers as its usable CPUs
// (platform/usable_cpus.h) have room for, but at most one a trial; one where there is a GPU, which
// trains many trials at once.
int WorkerCount(const LocalWorkers& workers, size_t trials);

struct LocalTraining {
  std::string experiment;  // full name
  int workers = 1;
  LocalWorkers options;
  // Shows nothing on the way.
  bool quiet = false;
};

// Starts workers for this experiment alone and shows what they do to its end; says before what else
// waits in the directory. Returns what WatchExperiment returns; after Ctrl-C the workers have
// written checkpoints, `service` is stopped, and the user was told how to go on. `interrupts` must
// have been there before the service was, so that Ctrl-C does not end the client before its
// children; a second Ctrl-C while they stop ends all.
absl::StatusOr<int> TrainHere(Program& program, PrivateService& service, Connection& connection,
                              const LocalTraining& training,
                              std::optional<InterruptGuard>& interrupts);

// Shows an experiment of a server, or with --data_dir trains it here first, to its end.
absl::StatusOr<int> TrainOrWatch(Program& program, Connection& connection,
                                 const v1::Experiment& experiment, const LocalWorkers& workers,
                                 std::optional<InterruptGuard>& interrupts, bool quiet = false);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_LOCAL_TRAINING_H_
