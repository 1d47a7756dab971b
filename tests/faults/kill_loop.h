// Repeated kill -9: a server and three workers die at random while experiments run.
#ifndef LENGTHWISE_TESTS_FAULTS_KILL_LOOP_H_
#define LENGTHWISE_TESTS_FAULTS_KILL_LOOP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lengthwise::faults {

struct KillLoopOptions {
  int kills = 20;
  // Determines which process dies, and when.
  uint64_t seed = 1;
  absl::Duration longest_pause = absl::Milliseconds(500);
  // Created if necessary.
  std::string directory;
  std::vector<std::string> worker_command;
  // True if the workers are scripted_worker. Then the expected history is computed; otherwise it is
  // measured in an undisturbed run.
  bool scripted = true;
};

struct KillLoopReport {
  int server_kills = 0;
  int worker_kills = 0;
  int experiments = 0;
  int64_t trials = 0;
  // Leases of a trial after its first: how often a kill took its worker.
  int64_t repeated_attempts = 0;
  int64_t resumed_from_checkpoint = 0;
  int64_t events = 0;  // in the log at the end
  absl::Duration duration;
  // Broken promises (see Problems of history.h), including events that a watcher missed or saw
  // twice.
  std::vector<std::string> problems;
};

// Sets the options of workers: lengthwise_worker, which trains, or scripted_worker.
void ChooseWorkers(bool real, KillLoopOptions& options);

// Submits an experiment as often as needed to have work until the last kill. The server is
// server/lengthwise_server.
KillLoopReport RunKillLoop(const KillLoopOptions& options);

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_KILL_LOOP_H_
