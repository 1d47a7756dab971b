#include "tests/faults/kill_loop.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/kill_loop_specification.h"

namespace lengthwise::faults {
namespace {

TEST(KillLoopTest, RandomKillsLeaveTheUndisturbedHistory) {
  const KillLoopReport report = RunKillLoop(
      {.kills = 20,
       .seed = 20261121,
       .directory = testing::TempDir() + "/kill_loop",
       .server_program = "server/lengthwise_server",
       .worker_command = {"tests/faults/scripted_worker", "--step_microseconds", "2000"},
       .specification = kKillLoopSpecification});
  EXPECT_THAT(report.problems, testing::IsEmpty());
  EXPECT_EQ(report.server_kills + report.worker_kills, 20);
  EXPECT_GT(report.server_kills, 0);
  // The kills had an effect: trials lost their workers and resumed from checkpoints.
  EXPECT_GT(report.repeated_attempts, 0);
  EXPECT_GT(report.resumed_from_checkpoint, 0);
}

}  // namespace
}  // namespace lengthwise::faults
