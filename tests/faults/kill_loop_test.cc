// 20 kills of scripted workers and their server; LENGTHWISE_KILLS and LENGTHWISE_REAL_WORKERS ask
// for more, and for workers that train.
#include "tests/faults/kill_loop.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::faults {
namespace {

TEST(KillLoopTest, RandomKillsLeaveTheUndisturbedHistory) {
  KillLoopOptions options;
  ChooseWorkers(std::getenv("LENGTHWISE_REAL_WORKERS") != nullptr, options);
  if (const char* kills = std::getenv("LENGTHWISE_KILLS")) options.kills = std::stoi(kills);
  options.seed = 20261121;
  options.directory = testing::TempDir() + "/kill_loop";
  const KillLoopReport report = RunKillLoop(options);
  EXPECT_THAT(report.problems, testing::IsEmpty());
  EXPECT_EQ(report.server_kills + report.worker_kills, options.kills);
  EXPECT_GT(report.server_kills, 0);
  // The kills had an effect: trials lost their workers and resumed from checkpoints.
  EXPECT_GT(report.repeated_attempts, 0);
  EXPECT_GT(report.resumed_from_checkpoint, 0);
}

}  // namespace
}  // namespace lengthwise::faults
