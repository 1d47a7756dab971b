// At least two million events of random histories. A failure names the seed that replays it:
// bazel run //server/simulation:simulate -- --first_seed=SEED --seeds=1
#include "server/simulation/simulation.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

Simulation::Options OptionsOf(uint64_t seed, int64_t events) {
  Simulation::Options options;
  options.seed = seed;
  options.events = events;
  options.workers = 3 + static_cast<int>(seed % 6);
  options.directory = absl::StrCat(testing::TempDir(), "/simulation_", seed);
  return options;
}

TEST(SimulationTest, MillionsOfEventsKeepThePromise) {
  constexpr int64_t kEvents = 2'000'000;
  constexpr int64_t kEventsOfASeed = 100'000;
  int64_t events = 0, successes = 0, retries = 0, preemptions = 0, splits = 0, expiries = 0;
  int64_t alone = 0, condemned = 0, offered_again = 0;
  int64_t deaths = 0, failed_commits = 0, damages = 0, deletions = 0, refused_deletions = 0;
  for (uint64_t seed = 1; events < kEvents; ++seed) {
    Simulation simulation(OptionsOf(seed, kEventsOfASeed));
    ASSERT_EQ(simulation.Run(), "");
    events += simulation.events();
    successes += simulation.promise().counts().successes;
    retries += simulation.promise().counts().retries;
    preemptions += simulation.promise().counts().preemptions;
    splits += simulation.promise().counts().splits;
    expiries += simulation.promise().counts().expiries;
    alone += simulation.promise().counts().alone;
    condemned += simulation.promise().counts().condemned;
    offered_again += simulation.promise().counts().offered_again;
    deaths += simulation.server().deaths();
    failed_commits += simulation.server().failed_commits();
    damages += simulation.server().damages();
    deletions += simulation.deletions();
    refused_deletions += simulation.refused_deletions();
  }
  // Everything that can happen did happen.
  EXPECT_GT(successes, 1000);
  EXPECT_GT(retries, 500);
  EXPECT_GT(preemptions, 50);
  EXPECT_GT(splits, 500);
  EXPECT_GT(expiries, 500);
  EXPECT_GT(alone, 50);
  EXPECT_GT(condemned, 50);
  EXPECT_GT(offered_again, 50);
  EXPECT_GT(deaths, 50);
  EXPECT_GT(failed_commits, 500);
  EXPECT_GT(damages, 50);
  EXPECT_GT(deletions, 500);
  EXPECT_GT(refused_deletions, 50);
}

TEST(SimulationTest, LargeFleetWithWallTimeStormsKeepsThePromise) {
  Simulation::Options options = OptionsOf(7, 1'000'000);
  options.workers = 1000;
  options.storms = true;
  Simulation simulation(options);
  ASSERT_EQ(simulation.Run(), "");
  EXPECT_GE(simulation.storms(), 2);
  EXPECT_GT(simulation.promise().counts().successes, 1000);
}

TEST(SimulationTest, SeedReplaysExactly) {
  Simulation first(OptionsOf(99, 20'000));
  ASSERT_EQ(first.Run(), "");
  Simulation second(OptionsOf(99, 20'000));
  ASSERT_EQ(second.Run(), "");
  EXPECT_EQ(first.Summary(), second.Summary());
}

}  // namespace
}  // namespace lengthwise::server
