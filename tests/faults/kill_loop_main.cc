// Runs the kill loop by hand, with any number of kills:
//
//   bazel run //tests/faults:kill_loop -- --kills=200 [--real] [--seed=1] [--directory=DIR]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/kill_loop.h"
#include "tests/faults/kill_loop_specification.h"

int main(int argc, char** argv) {
  CLI::App app("Kills a server and its workers at random and checks their promises.", "kill_loop");
  lengthwise::faults::KillLoopOptions options;
  const char* test_directory = std::getenv("TEST_TMPDIR");
  options.directory = absl::StrCat(test_directory == nullptr ? "/tmp" : test_directory,
                                   "/kill_loop_", absl::ToUnixSeconds(absl::Now()));
  options.server_program = "server/lengthwise_server";
  options.specification = lengthwise::faults::kKillLoopSpecification;
  bool real = false;
  int64_t longest_pause = 0;
  app.add_option("--kills", options.kills, "Number of kills")->capture_default_str();
  app.add_option("--seed", options.seed, "Determines which process dies, and when")
      ->capture_default_str();
  app.add_option("--directory", options.directory, "Directory for logs and data. Not deleted");
  app.add_option("--longest_pause", longest_pause,
                 "Longest pause between kills, in milliseconds. Default 500; with --real 1500");
  app.add_flag("--real", real, "Run lengthwise_worker, which trains, instead of scripted_worker");
  CLI11_PARSE(app, argc, argv);
  // A real worker needs a second before it trains.
  if (real) options.longest_pause = absl::Milliseconds(1500);
  if (longest_pause > 0) options.longest_pause = absl::Milliseconds(longest_pause);
  options.scripted = !real;
  if (real) {
    options.worker_command = {"worker/lengthwise_worker", "--device", "cpu", "--threads", "1"};
  } else {
    options.worker_command = {"tests/faults/scripted_worker", "--step_microseconds", "3000"};
  }
  std::printf("%s: %d kills with seed %llu, data in %s\n",
              absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::Now(), absl::UTCTimeZone()).c_str(),
              options.kills, static_cast<unsigned long long>(options.seed),
              options.directory.c_str());
  std::fflush(stdout);
  const lengthwise::faults::KillLoopReport report = RunKillLoop(options);
  std::printf(
      "killed the server %d times, workers %d times in %.1f s; %d experiments, %lld trials, "
      "%lld repeated attempts, %lld resumed from a checkpoint, %lld events\n",
      report.server_kills, report.worker_kills, absl::ToDoubleSeconds(report.duration),
      report.experiments, static_cast<long long>(report.trials),
      static_cast<long long>(report.repeated_attempts),
      static_cast<long long>(report.resumed_from_checkpoint),
      static_cast<long long>(report.events));
  for (const std::string& problem : report.problems) std::printf("WRONG %s\n", problem.c_str());
  std::printf("%s\n", report.problems.empty() ? "every promise was kept" : "promises were broken");
  return report.problems.empty() ? 0 : 1;
}
