// Runs the kill loop by hand, with any number of kills:
//
//   bazel run //tests/faults:kill_loop -- --kills=200 [--real] [--seed=1] [--directory=DIR]
#include <cstdint>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/kill_loop.h"

int main(int argc, char** argv) {
  CLI::App app("Kills a server and its workers at random and checks their promises.", "kill_loop");
  lengthwise::faults::KillLoopOptions options;
  options.directory = absl::StrCat("/tmp/kill_loop_", absl::ToUnixSeconds(absl::Now()));
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
  ChooseWorkers(real, options);
  if (longest_pause > 0) options.longest_pause = absl::Milliseconds(longest_pause);
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
