// Runs simulations, one per seed:
//   simulate [--seeds=N] [--first_seed=N] [--events=N] [--workers=N] [--storms]
// Prints a summary of each. At the first broken promise it prints the violation and its seed, and
// exits with code 1.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "platform/files.h"
#include "server/simulation/simulation.h"

int main(int argc, char** argv) {
  uint64_t first_seed = 1;
  uint64_t seeds = 10;
  int64_t events = 1'000'000;
  int workers = 0;
  bool storms = false;
  CLI::App app(
      "Simulates a server, workers and users under random faults and checks the server's promises");
  app.add_option("--first_seed", first_seed)->capture_default_str();
  app.add_option("--seeds", seeds, "Number of simulations")->capture_default_str();
  app.add_option("--events", events, "Events per simulation")->capture_default_str();
  app.add_option("--workers", workers, "Workers per simulation. 0: 3 to 8, depending on the seed")
      ->capture_default_str();
  app.add_flag("--storms", storms, "A third of the workers stops at the same time, repeatedly");
  CLI11_PARSE(app, argc, argv);
  char directory[] = "/tmp/lengthwise_simulation_XXXXXX";
  if (mkdtemp(directory) == nullptr) {
    std::cerr << "cannot make " << directory << "\n";
    return 1;
  }
  int64_t all = 0;
  std::string broken;
  for (uint64_t seed = first_seed; seed < first_seed + seeds && broken.empty(); ++seed) {
    lengthwise::server::Simulation simulation(
        {.seed = seed,
         .workers = workers > 0 ? workers : 3 + static_cast<int>(seed % 6),
         .storms = storms,
         .events = events,
         .directory = absl::StrCat(directory, "/", seed)});
    broken = simulation.Run();
    all += simulation.events();
    std::cout << "seed " << seed << ": " << simulation.Summary() << std::endl;
    lengthwise::platform::DeleteTree(absl::StrCat(directory, "/", seed)).IgnoreError();
  }
  lengthwise::platform::DeleteTree(directory).IgnoreError();
  std::cout << all << " events; " << (broken.empty() ? "the promise was kept" : broken) << "\n";
  return broken.empty() ? 0 : 1;
}
