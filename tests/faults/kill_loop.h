// kill -9, again and again: a server and three workers die at random while experiments run.
#ifndef LENGTHWISE_TESTS_FAULTS_KILL_LOOP_H_
#define LENGTHWISE_TESTS_FAULTS_KILL_LOOP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lengthwise::faults {

struct KillLoopOptions {
  int kills = 20;
  // Decides who dies, and how long each time is until then.
  uint64_t seed = 1;
  absl::Duration longest_pause = absl::Milliseconds(150);
  // Made if it is missing.
  std::string directory;
  std::string server_program;
  std::vector<std::string> worker_command;
  // Whether the workers are scripted_worker: then the expected history is computed, and otherwise
  // measured in a run that nothing disturbs.
  bool scripted = true;
  // YAML; submitted as often as it takes to have work until the last kill.
  std::string specification;
};

struct KillLoopReport {
  int server_kills = 0;
  int worker_kills = 0;
  int experiments = 0;
  int64_t trials = 0;
  // Leases beyond the first of each trial: how often the kills cost one its worker.
  int64_t repeated_attempts = 0;
  int64_t resumed_from_checkpoint = 0;
  int64_t events = 0;  // in the log at the end
  absl::Duration duration;
  // What breaks the promise; see Problems of history.h. Also what a watcher who was there all the
  // time missed or saw twice.
  std::vector<std::string> problems;
};

KillLoopReport RunKillLoop(const KillLoopOptions& options);

}  // namespace lengthwise::faults

#endif  // LENGTHWISE_TESTS_FAULTS_KILL_LOOP_H_
